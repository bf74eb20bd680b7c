"""A reply read on its way through: the events of a stream, or one JSON text. Total and bounded.

Whatever cannot be read (a text or event beyond `MOST`, an encoding that we do not know) leaves the usage unknown.
"""

import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from prill.gateway.wire import Seen, objects

MOST = 32 << 20
"""Bytes of one event, or of one JSON text, that are kept to be read."""
Take = Callable[[Seen, dict[str, Any]], None]


class Reading:
    """What a reply tells of its cost, fed with its bytes as they come."""

    def __init__(self, take: Take, content_type: str, encoding: str) -> None:
        self.seen = Seen()
        self._take, self._stream = take, "event-stream" in content_type.lower()
        self._kept, self._event, self._lost = bytearray(), bytearray(), False
        self._packed = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate", "x-gzip") else None
        self._deaf = encoding not in ("", "identity", "gzip", "deflate", "x-gzip")

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        if self._deaf:
            return
        if self._packed is None:
            self._plain(piece)
            return
        try:
            while piece and not self._packed.eof:
                self._plain(self._packed.decompress(piece, 1 << 20))
                piece = self._packed.unconsumed_tail
        except zlib.error:
            self._deaf = True

    def end(self) -> Seen:
        """No more comes; what was learnt."""
        if not self._stream:
            self._object(bytes(self._kept) if not self._lost else b"", whole=True)
        else:
            self._line(bytes(self._kept))
            self._dispatch()
        return self.seen

    def _plain(self, piece: bytes) -> None:
        if not self._stream:
            self._lost = self._lost or len(self._kept) + len(piece) > MOST
            if self._lost:
                self._kept.clear()
            else:
                self._kept += piece
            return
        *lines, rest = piece.split(b"\n")
        if lines:
            self._line(bytes(self._kept) + lines[0] if self._kept else lines[0])
            for line in lines[1:]:
                self._line(line)
            self._kept[:] = rest
        else:
            self._kept += rest
        if len(self._kept) > MOST:
            self._kept.clear()
            self._event.clear()
            self._lost = True  # up to the end of this event: half of one is none

    def _line(self, line: bytes) -> None:
        line = line.removesuffix(b"\r")
        if not line:
            self._dispatch()
        elif line.startswith(b"data:") and not self._lost:
            self._event += (b"\n" if self._event else b"") + line[5:].removeprefix(b" ")
            if len(self._event) > MOST:
                self._event.clear()
                self._lost = True

    def _dispatch(self) -> None:
        data, self._lost = bytes(self._event), False
        self._event.clear()
        if data.strip() == b"[DONE]":
            self.seen.ended = True
            self.seen.final = self.seen.tokens is not None
        elif data:
            self._object(data, whole=False)

    def _object(self, data: bytes, *, whole: bool) -> None:
        found = read(data)
        for each in objects(found if isinstance(found, list) else [found]):
            self._take(self.seen, each)
        if whole and isinstance(found, dict) and self.seen.tokens is not None and found.get("usageMetadata"):
            self.seen.final = True  # a whole reply has nothing more to say


def read(data: bytes) -> Any:
    """JSON, or nothing; bytes that are no UTF-8 are replaced, since a count does not hang on them."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        return msgspec.json.decode(data.decode(errors="replace"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
