"""Messages between processes over a socket: length, one letter for what it is, bytes.

A frame that is too long, late or cut off is an exception; nothing here knows whose fault that is.
"""

import socket
import struct
import time
from typing import NamedTuple

HEAD = struct.Struct(">IB")
LONGEST = 80 << 20


class Frame(NamedTuple):
    """One message."""

    kind: str
    payload: bytes


class Gone(Exception):
    """The other side has closed, or died."""


class Late(Exception):
    """The other side has not spoken, or not listened, in time."""


class TooLong(Exception):
    """The other side announced more bytes than are taken."""


def send(link: socket.socket, kind: str, payload: bytes = b"", until: float | None = None) -> None:
    """Send one frame, by a moment of `time.monotonic`."""
    _hurry(link, until)
    try:
        link.sendall(HEAD.pack(len(payload), ord(kind)) + payload)
    except TimeoutError:
        raise Late from None
    except OSError:
        raise Gone from None


def receive(link: socket.socket, until: float | None = None, longest: int = LONGEST) -> Frame:
    """Wait for one frame."""
    length, kind = HEAD.unpack(_exactly(link, HEAD.size, until))
    if length > longest:
        raise TooLong(f"a message of {length} bytes, {longest} is the most")
    return Frame(chr(kind), _exactly(link, length, until))


def _exactly(link: socket.socket, count: int, until: float | None) -> bytes:
    pieces: list[bytes] = []
    while count > 0:
        _hurry(link, until)
        try:
            piece = link.recv(min(count, 1 << 20))
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Gone from None
        if not piece:
            raise Gone
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _hurry(link: socket.socket, until: float | None) -> None:
    if until is None:
        link.settimeout(None)
    elif (left := until - time.monotonic()) > 0:
        link.settimeout(left)
    else:
        raise Late
