"""The relay in a box, and what a box sees of the world through it."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from exits import World, everything, opened, tunnel
from prill import plugins, runtime
from prill.gateway.hosts import environment
from prill.sockets import EGRESS, Command, Mount, Need, Sandbox
from test_hosts import client_hello


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An open world."""
    with opened(tmp_path) as found:
        yield found


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as trial:
        return int(trial.getsockname()[1])


@contextmanager
def relayed(repo: Path, *pairs: str) -> Iterator[None]:
    """The relay at work, as a box runs it: a program of its own that has only the standard library."""
    command = [sys.executable, "-I", "-S", str(repo / "src/prill/tools/relay.py"), "--ready", "-", *pairs]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout and program.stderr
        try:
            assert program.stdout.readline() == b"ready\n"
            yield
        finally:
            program.terminate()
            assert (program.stdout.read(), program.stderr.read()) == (b"", b"")


def test_a_program_in_the_box_reaches_hosts_through_relay_and_proxy(world: World, repo: Path) -> None:
    """Python's own HTTP client gets a page and a refusal's words through a port of its loopback."""
    port = free_port()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    with relayed(repo, f"{port}={world.door}"):
        assert json.load(opener.open("http://some.example/page"))["path"] == "/page"
        with pytest.raises(urllib.error.HTTPError, match="prill: hosted_api"):
            opener.open("http://api.hosted.example/")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"https": f"http://127.0.0.1:{port}"}))
        with pytest.raises(urllib.error.URLError, match="prill: hosted_api: api"):
            opener.open("https://api.hosted.example/")


def test_the_relay_survives_a_missing_door_and_keeps_the_ends_apart(world: World, repo: Path, tmp_path: Path) -> None:
    """A door that is not there closes the connection only, and large pieces and half-closed sides come through."""
    ports = free_port(), free_port()
    with relayed(repo, f"{ports[0]}={world.door}", f"{ports[1]}={tmp_path / 'none'}"):
        with socket.create_connection(("127.0.0.1", ports[1])) as client:
            assert everything(client) == b""
        with socket.create_connection(("127.0.0.1", ports[0])) as client:
            data = client_hello("some.example") + os.urandom(1 << 20)
            client.sendall(tunnel("some.example"))
            head = client.recv(100)
            sender = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)))
            sender.start()
            assert head.startswith(b"HTTP/1.1 200") and everything(client) == data
            sender.join()


def test_the_relay_listens_in_the_box_only_and_makes_its_file(world: World, repo: Path, tmp_path: Path) -> None:
    """The relay listens on 127.0.0.1 alone, and a file says that it does."""
    port, ready = free_port(), tmp_path / "ready"
    command = [sys.executable, str(repo / "src/prill/tools/relay.py"), "--ready", str(ready), f"{port}={world.door}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as program:
        until = time.monotonic() + 20
        while not ready.exists() and time.monotonic() < until:
            time.sleep(0.01)
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", port), timeout=5)
        socket.create_connection(("127.0.0.1", port)).close()
        program.terminate()
    assert subprocess.run([*command[:2], "nonsense"], capture_output=True).returncode == 1


def test_a_box_without_network_has_the_doors_and_nothing_else(world: World, repo: Path, tmp_path: Path) -> None:
    """In a real box a program gets a page, a refusal's words and no other way out, through the mounted socket alone."""
    if not which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    sandbox: Sandbox = plugins.get("sandboxes", "bubblewrap")
    doors, code = tmp_path / "doors", tmp_path / "ask.py"
    doors.mkdir()
    os.link(world.door, doors / "egress.sock")
    code.write_text(
        "import socket, urllib.request\n"
        "print(urllib.request.urlopen('http://some.example/page').status)\n"
        "try: urllib.request.urlopen('https://api.hosted.example/')\n"
        "except OSError as error: print(error)\n"
        "try: socket.create_connection(('93.184.216.34', 80), 2)\n"
        "except OSError as error: print('no way out')\n"
    )
    mounts = (
        Mount(source=doors, target="/doors"),
        Mount(source=repo / "src/prill/tools/relay.py", target="/bin-of-ours/relay"),
        Mount(source=code, target="/bin-of-ours/ask.py"),
    )
    python = str(Path(sys.executable).resolve())
    said = tmp_path / "ready"
    need = Need(
        mounts=mounts, runtime=runtime.folders(), env={**runtime.environment(), **environment({"egress": EGRESS})}
    )
    with sandbox.open(need) as box:
        relay = Command(argv=(python, "/bin-of-ours/relay", "--ready", "-", "4142=/doors/egress.sock"))
        box.start(relay, stdout=said, stderr=tmp_path / "relay.err")
        until = time.monotonic() + 20
        while not (said.exists() and said.read_text()) and time.monotonic() < until:
            time.sleep(0.01)
        ran = box.run(Command(argv=(python, "/bin-of-ours/ask.py")), stdout=tmp_path / "out", stderr=tmp_path / "err")
    assert ran.exit_code == 0, (tmp_path / "err").read_text()
    page, refusal, way = (tmp_path / "out").read_text().splitlines()
    assert (page, way) == ("200", "no way out") and "prill: hosted_api" in refusal
