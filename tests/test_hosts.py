"""Host names in every spelling, the policy's word on them, and the first words of TLS and HTTP."""

import ssl
from contextlib import suppress
from functools import cache
from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.catalog import Catalog
from prill.gateway import asked, hello
from prill.gateway.hosts import authority, environment, fits, judge, normal, not_public
from prill.outside import Host, HostPolicy

POLICIES = {name: Catalog().hosts(name) for name in Catalog().names("hosts")}
OPEN = POLICIES["posttrainbench-1.1"]
HOSTED = (
    "api.openai.com chatgpt.com us.api.openai.com mine.openai.azure.com models.github.ai api.anthropic.com claude.ai"
    " generativelanguage.googleapis.com aiplatform.googleapis.com us-central1-aiplatform.googleapis.com"
    " autopush-generativelanguage.googleapis.com bedrock-runtime.eu-west-1.amazonaws.com"
    " bedrock.us-east-1.amazonaws.com runtime.sagemaker.us-east-1.amazonaws.com api.mistral.ai api.cohere.com"
    " api.together.xyz api.fireworks.ai api.deepinfra.com openrouter.ai api.replicate.com api.perplexity.ai api.x.ai"
    " api.deepseek.com open.bigmodel.cn api.z.ai api.moonshot.cn dashscope.aliyuncs.com dashscope-intl.aliyuncs.com"
    " ark.cn-beijing.volces.com api.cerebras.ai integrate.api.nvidia.com router.huggingface.co api.groq.com"
    " api-inference.huggingface.co abc.us-east-1.aws.endpoints.huggingface.cloud"
)
FREE = (
    "github.com raw.githubusercontent.com openaipublic.blob.core.windows.net arxiv.org files.pythonhosted.example"
    " deb.debian.org conda.anaconda.org s3.amazonaws.com storage.googleapis.com notapi.openai.com.example"
    " models.dev download.pytorch.org"
)


def policy(*lines: str, otherwise: str = "deny") -> HostPolicy:
    """A policy of lines `VERDICT NAME`."""
    hosts = tuple(Host(name=line.split()[1], verdict=line.split()[0], rule="r", why="w") for line in lines)
    return HostPolicy(name="p", title="P", otherwise=otherwise, hosts=hosts)


def test_hosted_models_are_denied_by_every_family() -> None:
    """A hosted model's host is refused under the rule `hosted_api`, in any case and with a dot behind it."""
    for host in HOSTED.split():
        for spelt in (host, host.upper() + ".", "．".join(host.split("."))):
            ruling = judge(OPEN, spelt)
            assert (ruling.verdict, ruling.rule, ruling.host) == ("deny", "hosted_api", host), spelt
        assert judge(POLICIES["posttrainbench-1"], host).verdict == "flag"


def test_the_rest_of_the_net_is_open_and_closed_is_closed() -> None:
    """A host that no line names is let through by an open policy and refused by the closed one."""
    for host in FREE.split():
        assert judge(OPEN, host).verdict == "allow", host
        assert judge(POLICIES["closed"], host).verdict == "deny"


def test_the_benchmark_s_own_site_and_ways_around_the_front_are_denied() -> None:
    """The benchmark's site is a look-up, and the hub, its mirrors and its content hosts are only behind the front."""
    assert judge(OPEN, "www.posttrainbench.com").rule == "lookup"
    for host in ("huggingface.co", "cdn-lfs.huggingface.co", "cas-bridge.xethub.hf.co", "hf-mirror.com"):
        assert (judge(OPEN, host).verdict, judge(OPEN, host).rule) == ("deny", "hub")
    assert judge(OPEN, "www.modelscope.cn").verdict == "flag"


def test_every_policy_of_ours_can_be_met() -> None:
    """No line of a shipped policy is dead: its own name, with something for each star, is decided by it."""
    for found in POLICIES.values():
        for line in found.hosts:
            name, slash, path = line.name.partition("/")
            ruling = judge(found, name.replace("*", "abc"), path.replace("*", "abc") if slash else None)
            if "*" not in path:
                assert ruling.line == line.name


def test_the_first_line_that_fits_decides_and_paths_need_a_path() -> None:
    """Order decides between lines, `*.x` leaves out `x`, and a line with a path fits only from that place on."""
    found = policy("allow docs.a.example", "deny *.a.example", "flag a.example/x", "deny a.example", otherwise="allow")
    assert [judge(found, host).verdict for host in ("docs.a.example", "b.a.example", "a.example")] == [
        "allow", "deny", "deny",
    ]  # fmt: skip
    paths = {"/x": "flag", "/X/y?z": "flag", "/xy": "deny", "/": "deny"}
    assert {path: judge(found, "a.example", path).verdict for path in paths} == paths


def test_addresses_by_number_are_refused_unless_named() -> None:
    """An address in any spelling is refused even by an open policy, and a line that names it in any spelling fits."""
    spellings = ("10.0.0.7", "0x0a.7", "167772167", "012.0.0.07", "10.7", "[::ffff:10.0.0.7]")
    assert {judge(OPEN, each).rule for each in spellings} == {"address"}
    named = policy("allow 10.0.0.7", "flag 1.1.1.1")
    assert [judge(named, each).literal for each in spellings] == [True] * 5 + [False]
    assert (judge(named, "1.1.1.1").verdict, judge(named, "1.1.1.1").literal) == ("flag", False)


def test_hostile_spellings_have_no_form() -> None:
    """What is no host's name in the strict sense is malformed and refused, not repaired."""
    for text in (
        "", ".", "a..b", "-a.b", "a b", "a\tb", "a\nb", "a\0b", "a/b", "a@b", "a%2eb", "a:b", "http://a", "*.a",
        "1.2.3.4.5", "256.1.1.1", "0x.1", "09.1.1.1", "1.2.3.99999", "a.0x", "a.1", "[::1", "::1%eth0", "a" * 64,
        "a." * 200, "é" * 300, "\ud800.com", "☃" * 60,
    ):  # fmt: skip
        assert judge(OPEN, text).rule == "malformed", text


def test_an_authority_is_a_host_and_a_port() -> None:
    """Ports are numbers in range, a user name before the host is refused, brackets hold an IPv6 address."""
    assert authority("A.example:443") == ("a.example", 443)
    assert authority("[2001:DB8::1]:8443") == ("2001:db8::1", 8443)
    assert authority("a.example", 80) == ("a.example", 80)
    for text in (
        "a.example",
        "a.example:0",
        "a:65536",
        "a:4 3",
        "u@a:1",
        "u:p@a:1",
        "a:1:2",
        "::1:443",
        "a\\@b:1",
        "a:+1",
    ):
        with pytest.raises(ValueError):
            authority(text)


def test_only_public_addresses_are_public() -> None:
    """Private, local, shared, metadata and multicast addresses are told, also inside IPv6 forms that carry them."""
    for text in (
        "127.0.0.1", "10.1.1.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.1.1", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "192.0.2.1", "100.100.100.200",
        "168.63.129.16", "::", "::1",
        "fe80::1", "fc00::1",
        "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::1", "2001:db8::1",
    ):  # fmt: skip
        assert not_public(ip_address(text)), text
    for text in ("93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"):
        assert not_public(ip_address(text)) is None, text


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300), st.text(alphabet="0123456789xabcdef.:[]-_*%@/", max_size=40))
def test_judging_never_raises_and_forms_are_stable(text: str, spelt: str) -> None:
    """Whatever is asked for gets a ruling, and the one form of a host is its own one form."""
    for each in (text, spelt):
        ruling = judge(OPEN, each, each)
        assert ruling.verdict == "deny" or normal(ruling.host) == ruling.host


@settings(max_examples=200, deadline=None)
@given(st.text("ab.", max_size=12), st.text("ab.*", max_size=8))
def test_patterns_are_what_a_slow_reading_says(text: str, pattern: str) -> None:
    """A star stands for any part of a name, as a reading by trying all parts says."""

    def slow(text: str, pattern: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(slow(text[at:], pattern[1:]) for at in range(len(text) + 1))
        return text[:1] == pattern[0] and slow(text[1:], pattern[1:])

    assert fits(pattern, text) == slow(text, pattern)


# --- TLS ---


@cache
def client_hello(name: str | None) -> bytes:
    """The first bytes of this Python's own TLS client."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def split(whole: bytes, size: int) -> bytes:
    """The same hello cut into records of that size."""
    body = whole[5:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)


def test_the_name_in_a_real_hello_is_read() -> None:
    """A real client's hello gives its server's name, in one record or many, and every shorter piece asks for more."""
    whole = client_hello("api.example.com")
    assert hello.read(whole) == hello.Hello("whole", "api.example.com")
    assert hello.read(split(whole, 40)).name == "api.example.com"
    assert {hello.read(whole[:size]).state for size in range(len(whole))} == {"more"}
    assert hello.read(client_hello(None)).name is None


def test_two_names_and_other_protocols_are_no_hello() -> None:
    """A hello that can be read in two ways, plain HTTP, SSH and endless bytes are all no TLS."""
    whole = client_hello("a.example")
    entry = b"\x00\x00\x09a.example"
    at = whole.index(entry)
    twice = whole.replace(entry, entry + entry)
    grown = bytearray(twice)
    for place, size in ((3, 2), (6, 3), (at - 6 + 4, 2), (at - 6 + 2, 2)):
        grown[place : place + size] = (int.from_bytes(grown[place : place + size]) + len(entry)).to_bytes(size)
    extensions = 5 + 4 + 34 + 1 + whole[43]
    extensions += 2 + int.from_bytes(whole[extensions : extensions + 2])
    extensions += 1 + whole[extensions]
    grown[extensions : extensions + 2] = (int.from_bytes(grown[extensions : extensions + 2]) + len(entry)).to_bytes(2)
    for data in (
        bytes(grown),
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\0\0",
        b"\x16\x03\x01\x40\0\x01" * 9000,
    ):
        assert hello.read(data).state == "no-tls"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 600), st.integers(0, 255))
def test_reading_a_hello_never_raises(data: bytes, at: int, byte: int) -> None:
    """Noise, and a real hello with one byte changed, are read without an error."""
    whole = bytearray(client_hello("a.example"))
    whole[at % len(whole)] = byte
    for each in (data, b"\x16\x03\x01" + data, bytes(whole)):
        assert hello.read(each).state in ("more", "no-tls", "whole")


# --- HTTP ---


def test_a_plain_request_is_spelt_anew() -> None:
    """The host comes from the address and not from the header, and what is between neighbours does not go on."""
    head = (
        b"POST http://A.example:8080/x?y#z HTTP/1.1\r\nHost: other.example\r\nConnection: x-secret\r\nX-Secret: 1\r\n"
        b"Proxy-Authorization: Basic eA==\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n"
    )
    found = asked.read(head)
    assert (found.host, found.port, found.path, found.body) == ("a.example", 8080, "/x?y", 3)
    lines = found.head.split(b"\r\n")
    assert lines == [
        b"POST /x?y HTTP/1.1", b"Host: a.example:8080", b"content-length: 3", b"accept: */*", b"Connection: close",
        b"", b"",
    ]  # fmt: skip


def test_requests_that_can_be_read_in_two_ways_are_refused() -> None:
    """Two lengths, odd codings, bare line ends, tricks with users and relative addresses are each refused."""
    for head in (
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET https://a.example/ HTTP/1.1\r\n\r\n",
        b"CONNECT a.example HTTP/1.1\r\n\r\n",
        b"GET http://u@a.example/ HTTP/1.1\r\n\r\n", b"GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\nX: y\r\n\r\n", b"GET http://a.example/ HTTP/1.1\r\nX: y\rZ: w\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\n Folded: y\r\n\r\n", b"GET http://a.example/ HTTP/1.1\r\nX : y\r\n\r\n",
        b"PUT http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        b"PUT http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"PUT http://a.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"PUT http://a.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", b"GET http://a.example/ HTTP/2\r\n\r\n",
        b"GET  http://a.example/ HTTP/1.1\r\n\r\n", b"get http://a.example/ HTTP/1.1\r\n\r\n",
        b"\r\n\r\n", b"\x16\x03\x01\r\n\r\n",
    ):  # fmt: skip
        with pytest.raises(ValueError):
            asked.read(head)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.text("GETCONhtp:/.@a1 \r\n[]%\\", max_size=80))
def test_reading_a_head_gives_a_request_or_a_reason(noise: bytes, near: str) -> None:
    """Whatever the bytes, a head is read or refused with a `ValueError`, and what goes on holds no second request."""
    for data in (noise, b"GET http://" + noise + b" HTTP/1.1\r\n\r\n", near.encode() + b"\r\n\r\n"):
        with suppress(ValueError):
            assert asked.chunk(data) >= 0
        try:
            found = asked.read(data)
        except ValueError:
            continue
        assert found.head.count(b"\r\n\r\n") == (found.method != "CONNECT")


def test_a_box_is_told_where_its_doors_are() -> None:
    """Proxy variables come in both cases and leave out the doors, passwords stay outside, no hub means offline."""
    index = "PIP_INDEX" + "_URL"
    host = {index: "http://mirror.example/x", "UV_INDEX" + "_URL": "http://u:p@mirror.example", "HOME": "/nowhere"}
    told = environment({"egress": "http://127.0.0.1:4142", "hub": "http://127.0.0.1:4143"}, host)
    assert told["https_proxy"] == told["HTTPS_PROXY"] == told["ALL_PROXY"] == "http://127.0.0.1:4142"
    assert "127.0.0.1" in told["no_proxy"] and told["HF_ENDPOINT"] == "http://127.0.0.1:4143"
    assert told[index] and "UV_INDEX" + "_URL" not in told and "HOME" not in told
    assert environment({}) == {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "1"}
