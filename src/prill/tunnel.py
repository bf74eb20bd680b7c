"""A port of one box's loopback, reached from another box: `python -m prill.tunnel near|far SOCKET PORT`.

`near` runs in the box that asks: it listens on SOCKET, in a folder that only that box can write, and on PORT. `far`
runs in the box of a server that nobody trusts: it dials SOCKET, holds a few idle connections there, and joins each to
the server's PORT once the first byte comes. So the server's box needs no place to write, and has no door but this one,
by which it can be asked and nothing else. `near` prints "ready" once it listens, and both run until they are ended.
Not covered: programs of the server's box may end `far` or dial in its place; it is their own server that is then mute.
"""

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter

PIECE = 64 << 10
IDLE = 16
"""Connections that `far` holds ready."""
MOST_IDLE = 256
"""That `near` keeps; who dials more is hung up on."""
PATIENCE_SECONDS = 5.0
"""Until a connection must be there for whoever asks."""
REDIAL_SECONDS = 0.2


async def pump(source: StreamReader, target: StreamWriter) -> None:
    """Bytes of one direction, no faster than they are taken, then their end."""
    while piece := await source.read(PIECE):
        target.write(piece)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


async def joined(first: tuple[StreamReader, StreamWriter], second: tuple[StreamReader, StreamWriter]) -> None:
    """Two connections as one, until both directions have ended or one side breaks."""
    ways = [asyncio.create_task(pump(first[0], second[1])), asyncio.create_task(pump(second[0], first[1]))]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()


async def near(place: str, port: int) -> None:
    """Give whoever comes to the port a connection that the other side holds ready."""
    idle: asyncio.Queue[tuple[StreamReader, StreamWriter]] = asyncio.Queue(MOST_IDLE)

    async def dialled(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            idle.put_nowait((reader, writer))
        except asyncio.QueueFull:
            writer.close()

    async def asked(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError), contextlib.closing(writer):
            async with asyncio.timeout(PATIENCE_SECONDS):
                other = await idle.get()
                while other[0].at_eof() or other[1].is_closing():
                    other[1].close()
                    other = await idle.get()
            with contextlib.closing(other[1]):
                await joined((reader, writer), other)

    await asyncio.start_unix_server(dialled, place, limit=PIECE)
    await asyncio.start_server(asked, "127.0.0.1", port, limit=PIECE)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def far(place: str, port: int) -> None:
    """Hold connections ready; each that is used is followed by another."""

    async def hold() -> None:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(place, limit=PIECE)
                first = await reader.read(PIECE)
            except OSError:
                first = b""
            if not first:
                await asyncio.sleep(REDIAL_SECONDS)
                continue
            working = asyncio.create_task(carry(first, reader, writer))
            under_way.add(working)
            working.add_done_callback(under_way.discard)

    async def carry(first: bytes, reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            inner, outer = await asyncio.open_connection("127.0.0.1", port, limit=PIECE)
            with contextlib.closing(outer):
                outer.write(first)
                await joined((reader, writer), (inner, outer))

    under_way: set[asyncio.Task[None]] = set()  # a task that nobody holds may be cleared away
    await asyncio.gather(*(hold() for _ in range(IDLE)))


def main(arguments: list[str]) -> None:
    """Read the command line."""
    which, place, port = {"near": near, "far": far}[arguments[0]], arguments[1], int(arguments[2])

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # what breaks is told by its closing
        await which(place, port)

    asyncio.run(work())


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
