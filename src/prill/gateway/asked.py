"""The head of a request to a proxy → what is asked for. Pure, total on bytes: what can be read in two ways is refused.

Not covered: HTTP/2 and later, which no client speaks to a plain proxy.
"""

import re
from typing import Literal

from msgspec import Struct

from prill.gateway.hosts import authority

REQUEST = re.compile(rb"([A-Z][A-Z-]{0,19}) ([\x21-\x7e]{1,8000}) HTTP/1\.([01])")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):([\x20-\x7e\x80-\xff\t]*)")
HOP = frozenset(
    [b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"upgrade"]
)
"""Headers that are between two neighbours only; `transfer-encoding` stays, as the body is handed on as it comes."""


Size = int | Literal["chunked"] | None
"""How long a body is: bytes, in chunks that say so themselves, or until the other side ends."""


class Asked(Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    host: str
    """In its one form."""
    port: int
    path: str = ""
    """With its query; empty for a tunnel."""
    head: bytes = b""
    """What goes on to the server; empty for a tunnel."""
    body: Size = 0


def read(head: bytes) -> Asked:
    """A head, up to and with its empty line. `ValueError` says what is wrong, in words for whoever sent it."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = REQUEST.fullmatch(first)
    if match is None:
        raise ValueError("this is an HTTP proxy: CONNECT HOST:PORT, or a request with a whole http:// address")
    method, target = match[1].decode(), match[2].decode()
    if method == "CONNECT":
        host, port = authority(target)
        return Asked(method=method, host=host, port=port)
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise ValueError("this proxy takes whole http:// addresses; for https use CONNECT HOST:PORT")
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host, port = authority(place, 80)
    path = rest[len(place) :].partition("#")[0]
    path = path if path.startswith("/") else "/" + path
    named = f"[{host}]" if ":" in host else host
    headers, body = pruned(lines)
    told = [f"{method} {path} HTTP/1.1".encode(), f"Host: {named}{'' if port == 80 else f':{port}'}".encode(), *headers]
    whole = b"\r\n".join([*told, b"Connection: close", b"", b""])
    return Asked(method=method, host=host, port=port, path=path, head=whole, body=body)


def pruned(lines: list[bytes]) -> tuple[list[bytes], Size]:
    """Header lines without those for neighbours and without `Host`, and how long the body is."""
    pairs: list[tuple[bytes, bytes]] = []
    for line in lines:
        match = HEADER.fullmatch(line)
        if match is None:
            raise ValueError("a header that is none")
        pairs.append((match[1].lower(), match[2].strip(b" \t")))
    names = {word.strip().lower() for name, text in pairs if name == b"connection" for word in text.split(b",")}
    lengths = [text for name, text in pairs if name == b"content-length"]
    codings = [text.lower() for name, text in pairs if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1 or any(text != b"chunked" for text in codings):
        raise ValueError("the length of the body is said twice, or in an unknown way")
    if any(not re.fullmatch(rb"[0-9]{1,15}", text) for text in lengths):
        raise ValueError("the length of the body is no number")
    drop = HOP | {b"host"} | (names - {b"content-length", b"transfer-encoding"})
    kept = [name + b": " + text for name, text in pairs if name not in drop]
    return kept, "chunked" if codings else int(lengths[0]) if lengths else 0


def length(lines: list[bytes]) -> Size:
    """How long the body of an answer with these lines is. Total: what is unclear goes on until the end."""
    pairs = [line.lower().partition(b":") for line in lines]
    lengths = [text.strip() for name, _, text in pairs if name == b"content-length"]
    if any(name == b"transfer-encoding" for name, _, _ in pairs):
        return "chunked" if any(text.strip() == b"chunked" for _, _, text in pairs) else None
    return int(lengths[0]) if len(lengths) == 1 and re.fullmatch(rb"[0-9]{1,15}", lengths[0]) else None


def chunk(line: bytes) -> int:
    """The size that the first line of a chunk gives; `ValueError` where it gives none."""
    match = re.fullmatch(rb"([0-9a-fA-F]{1,12})(?:[ \t]*;[\x20-\x7e\t]{0,200})?\r\n", line)
    if match is None:
        raise ValueError("a chunk without a size")
    return int(match[1], 16)
