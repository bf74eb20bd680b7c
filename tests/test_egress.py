"""The egress proxy, driven over real sockets by friends and by foes; the far side is a server here."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exits import NAMES, POLICY, PUBLIC, World, everything, opened, tunnel
from prill.errors import InfraError
from prill.gateway import egress
from prill.gateway.logbook import Logbook
from test_hosts import client_hello


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An open world."""
    with opened(tmp_path) as found:
        yield found


def test_a_tunnel_carries_bytes_both_ways_and_is_logged_twice(world: World) -> None:
    """A tunnel passes all bytes and each side's end, with a line before the first byte and one after."""
    hello = client_hello("some.example")
    with world.client() as client:
        client.sendall(tunnel("SOME.example."))
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        begun = world.lines("asked")[0]
        assert (begun["host"], begun["port"], begun["method"], begun["step"]) == ("some.example", 443, "CONNECT", 7)
        assert (begun["verdict"], begun["rule"], begun["addresses"]) == ("allow", "otherwise", [PUBLIC])
        assert not world.lines("ended", 0)
        client.sendall(hello + b"x" * 100_000)
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == hello + b"x" * 100_000
    ended = world.lines("ended")[0]
    assert (ended["ended"], ended["up"], ended["down"]) == ("whole", len(hello) + 100_000, len(hello) + 100_000)
    assert (ended["address"], ended["server_name"], ended["id"]) == (PUBLIC, "some.example", begun["id"])
    assert world.connected == [(PUBLIC, 443)]


def test_a_denied_host_gets_words_and_nothing_is_looked_up(world: World) -> None:
    """A denied host is 403 with the rule and the reason in status line and body, and no name is asked of anybody."""
    said = world.ask(tunnel("API.hosted.example"))
    assert said.startswith(b"HTTP/1.1 403 prill: hosted_api: api.hosted.example: it is so\r\n")
    assert said.endswith(b"\r\n\r\nprill: hosted_api: api.hosted.example: it is so\n")
    assert (world.looked_up, world.connected) == ([], [])
    line = world.lines("asked")[0]
    assert (line["verdict"], line["rule"], line["line"]) == ("deny", "hosted_api", "api.hosted.example")


def test_a_flagged_host_is_reached_and_marked(world: World) -> None:
    """A flagged host is let through with the flag in its line."""
    said = world.ask(b"GET http://b.hosted.example/ HTTP/1.1\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert world.lines("asked")[0]["verdict"] == "flag"


def test_no_name_leads_to_this_machine_or_its_neighbours(world: World) -> None:
    """A name that is private, local or the cloud's metadata is refused, and of a mixed one the public is taken."""
    own = socket.gethostbyname(socket.gethostname())
    NAMES["own.example"] = [own]
    for host in ("private.example", "local.example", "cloud.example", "mapped.example", "own.example"):
        assert world.ask(tunnel(host)).startswith(b"HTTP/1.1 403 prill: private: "), host
    for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::1]", "169.254.169.254", "8.8.8.8"):
        assert world.ask(tunnel(host)).startswith(b"HTTP/1.1 403 prill: address: "), host
    assert world.connected == []
    assert len(world.looked_up) == 5
    world.ask(tunnel("mixed.example"), client_hello("mixed.example"))
    assert world.connected == [(PUBLIC, 443)]
    assert egress.own(egress.ip_address("127.0.0.1")) and not egress.own(egress.ip_address(PUBLIC))


def test_a_host_that_is_named_whole_may_be_private(world: World) -> None:
    """A policy's own line for a mirror on this network is enough to reach it."""
    assert world.ask(b"GET http://mirror.example/list HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert world.connected == [("127.0.0.1", 80)]


def test_what_cannot_be_found_is_not_denied(world: World) -> None:
    """A host without an address is told as one that cannot be found, and the policy's word on it stays."""
    said = world.ask(tunnel("nobody.example"))
    assert said.startswith(b"HTTP/1.1 502 prill: lookup_failed: no address is known for nobody.example")
    assert (world.lines("asked")[0]["verdict"], world.lines("ended")[0]["ended"]) == ("allow", "failed")


def test_a_tunnel_must_name_its_host_in_tls(world: World) -> None:
    """Another name, no name, plain HTTP and SSH in a tunnel are cut before a byte goes up, and the log says which."""
    hosts = {client_hello("api.hosted.example"): "api.hosted.example", client_hello(None): None}
    for first in (*hosts, b"GET / HTTP/1.1\r\nHost: api.hosted.example\r\n\r\n", b"SSH-2.0-OpenSSH\r\n"):
        said = world.ask(tunnel("cdn.example"), first)
        assert said == b"HTTP/1.1 200 Connection established\r\n\r\n"
    lines = world.lines("hello", 4)
    assert [line["server_name"] for line in lines] == [*hosts.values(), None, None]
    assert {line["verdict"] for line in lines} == {"deny"}
    assert {(line["rule"], line["up"]) for line in world.lines("ended", 4)} == {("tunnel", 0)}


def test_plain_requests_go_to_the_host_of_their_address(world: World) -> None:
    """A plain request keeps its path, gets its host from the address, and its body arrives whole in both framings."""
    head = b"POST http://some.example/a?b=c HTTP/1.1\r\nHost: api.hosted.example\r\n"
    whole = world.ask(head + b"Content-Length: 5\r\n\r\nhello")
    chunked = world.ask(head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n")
    for said in (whole, chunked):
        assert said.count(b"\r\nConnection: close\r\n") == 1
        assert json.loads(said.partition(b"\r\n\r\n")[2]) == {"path": "/a?b=c", "host": "some.example", "body": "hello"}
    assert world.lines("asked")[0]["path"] == "/a?b=c"
    said = world.ask(b"GET http://some.example/chunked HTTP/1.1\r\n\r\n")
    assert b'"path": "/chunked"' in said and said.endswith(b"\r\n0\r\n\r\n")


def test_a_second_request_behind_the_first_goes_nowhere(world: World) -> None:
    """Bytes behind a request's body never reach the server: another request would be one that nobody judged."""
    first = b"POST http://some.example/one HTTP/1.1\r\nContent-Length: 2\r\n\r\nok"
    said = world.ask(first + b"GET http://api.hosted.example/two HTTP/1.1\r\n\r\n")
    assert b"/one" in said and b"/two" not in said and said.count(b"HTTP/1.1") == 1
    assert len(world.lines("asked")) == 1


def test_hostile_bytes_end_in_an_answer_and_the_next_one_is_served(world: World) -> None:
    """A huge head, garbage, a cut head and odd chunks get 400 or silence, are logged, and the proxy goes on."""
    huge = b"GET http://some.example/ HTTP/1.1\r\nX: " + b"a" * (1 << 20)
    for bytes_ in (huge, b"\x00\xff" * 100 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"CONNECT x\r\n\r\n"):
        assert world.ask(bytes_)[:13] in (b"HTTP/1.1 400 ", b"")
    world.ask(b"GET http://some.exa")
    world.ask(b"POST http://some.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
    world.ask(b"POST http://some.example/ HTTP/1.1\r\nContent-Length: 99\r\n\r\ncut")
    assert world.ask(b"GET http://some.example/ HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")
    assert len(world.lines("ended", 8)) == 8


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_end(world: World, noise: bytes) -> None:
    """Whatever is sent, the connection ends with an answer or without, and the proxy lives."""
    for data in (noise, tunnel("some.example") + noise, b"GET http://some.example/" + noise + b"\r\n\r\n"):
        assert world.ask(data)[:9] in (b"HTTP/1.1 ", b"")


def test_connections_are_counted_and_idle_ones_end(tmp_path: Path) -> None:
    """More connections than allowed get 503, and a tunnel that is silent for too long is ended as idle."""
    with opened(tmp_path, connections=1, idle_seconds=0.3) as world:
        with world.client() as client:
            client.sendall(tunnel("some.example"))
            client.recv(100)
            client.sendall(client_hello("some.example"))
            assert world.ask(tunnel("some.example")).startswith(b"HTTP/1.1 503 prill: busy")
            everything(client)
        assert world.lines("ended")[0]["ended"] == "idle"


def test_an_open_tunnel_has_its_lines_when_the_proxy_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Closing the proxy ends its tunnels in silence, each with a last line, and takes its socket away."""
    with opened(tmp_path) as world:
        client = world.client()
        client.sendall(tunnel("some.example"))
        client.recv(100)
    assert everything(client) == b""
    client.close()
    assert [line["ended"] for line in world.lines("ended")] == ["cut by us"]
    assert not world.door.exists()
    assert capfd.readouterr().err == ""


def test_a_full_log_shuts_the_exit(tmp_path: Path) -> None:
    """What can't be logged is not done, and a line keeps only so much of a hostile text."""
    book = Logbook(tmp_path / "x.jsonl", most_bytes=3000)
    book.write(path="a" * 10_000)
    assert not book.full()
    book.write(path="b" * 10_000)
    assert book.full() and (tmp_path / "x.jsonl").stat().st_size < 4100
    book.close()


def test_a_socket_that_cannot_be_is_an_error_in_one_line(tmp_path: Path) -> None:
    """A path too long for a socket and a file in its place are told, a dead socket is replaced."""
    for door, words in ((tmp_path / ("x" * 120), "at most"), (tmp_path / "file", "in the way")):
        (tmp_path / "file").write_text("")
        with pytest.raises(InfraError, match=words):
            egress.Egress(policy=POLICY, log=tmp_path / "l", socket=door, step=lambda: None).__enter__()
    with opened(tmp_path):
        pass
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(os.fspath(tmp_path / "egress.sock"))
    dead.close()
    with opened(tmp_path) as world:
        assert world.ask(tunnel("api.hosted.example"))
