"""The first words of a TLS client → the server's name in them. Pure, total, bounded.

Not covered: what is said after the handshake, and a name that is encrypted (ECH): then the outer name is seen.
"""

from typing import Literal

from msgspec import Struct

MOST = 32 << 10
"""Bytes that a ClientHello may have; real ones have about two thousand."""
RECORDS = 64
"""Records that it may be cut into; real ones need one."""
HANDSHAKE, CLIENT_HELLO, SERVER_NAME, ENCRYPTED = 22, b"\1", 0, 0xFE0D


class Hello(Struct, frozen=True):
    """What is known of a client's first bytes."""

    state: Literal["more", "no-tls", "whole"]
    """`more`: too few bytes yet; `no-tls`: no TLS client speaks like this; `whole`: read."""
    name: str | None = None
    """The server's name as it stands there; `None`: none is given."""
    encrypted: bool = False
    """Whether there may be another name that cannot be read; many clients send such a part filled with nothing."""


class Cut(Exception):
    """Fewer bytes than they claim to be."""


class Reader:
    """Takes numbers and pieces off the front of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def piece(self, size: int) -> bytes:
        """The next `size` bytes; `Cut` where there are fewer."""
        if self.at + size > len(self.data):
            raise Cut
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        """The next `size` bytes as a number."""
        return int.from_bytes(self.piece(size))

    def block(self, size: int) -> "Reader":
        """What follows a length of `size` bytes."""
        return Reader(self.piece(self.number(size)))

    def left(self) -> bool:
        """Whether anything is left."""
        return self.at < len(self.data)


def read(data: bytes) -> Hello:
    """Reads as many bytes as there are; never raises."""
    try:
        message = handshake(data[:MOST])
    except Cut:
        return Hello("more") if len(data) < MOST else Hello("no-tls")
    try:
        return Hello("no-tls") if message is None else client_hello(Reader(message))
    except (Cut, ValueError):
        return Hello("no-tls")


def handshake(data: bytes) -> bytes | None:
    """The first handshake message, joined from its records; `None`: it is no ClientHello, `Cut`: it is cut."""
    records, message = Reader(data), b""
    for _ in range(RECORDS):
        if (records.number(1), records.number(1)) != (HANDSHAKE, 3):
            return None
        records.piece(1)
        size = records.number(2)
        if not 0 < size <= 16384:
            return None
        message += records.piece(min(size, len(data) - records.at))
        if message[:1] not in (b"", CLIENT_HELLO):
            return None
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4]):
            return message[4 : 4 + int.from_bytes(message[1:4])]
    return None


def client_hello(body: Reader) -> Hello:
    """A ClientHello without its head; `ValueError` where it names servers in a way that can be read in two."""
    body.piece(2 + 32)
    body.block(1), body.block(2), body.block(1)
    names: list[str] = []
    encrypted, seen = False, set()
    extensions = body.block(2) if body.left() else Reader(b"")
    while extensions.left():
        kind = extensions.number(2)
        content = extensions.block(2)
        if kind in seen:
            raise ValueError("an extension comes twice")
        seen.add(kind)
        encrypted |= kind == ENCRYPTED
        if kind == SERVER_NAME:
            entries = content.block(2)
            while entries.left():
                if entries.number(1) != 0:
                    raise ValueError("a name of an unknown kind")
                names.append(entries.piece(entries.number(2)).decode("ascii"))
    if len(names) > 1 or body.left():
        raise ValueError("more than one name, or more than a hello")
    return Hello("whole", names[0] if names else None, encrypted)
