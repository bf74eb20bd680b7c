#!/usr/bin/env python3
"""relay: joins ports of this box's own loopback to the sockets that are its doors.

    relay 4141=/doors/model.sock 4142=/doors/egress.sock
    relay --ready - 4141=/doors/model.sock      prints "ready" once it listens
    relay --ready FILE 4141=/doors/model.sock   makes FILE once it listens

It says nothing else and runs until it is ended. A socket that is not there, or not yet, only closes the connection.
Not covered: whoever may end this program in the box can; they then have no door.
"""

import asyncio
import contextlib
import sys
from pathlib import Path

PIECE = 64 << 10


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Bytes of one direction, no faster than they are taken, then their end."""
    while piece := await source.read(PIECE):
        target.write(piece)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: str) -> None:
    """One connection. Once one side breaks, so does the other."""
    with contextlib.suppress(OSError), contextlib.closing(writer):
        inner, outer = await asyncio.open_unix_connection(door, limit=PIECE)
        with contextlib.closing(outer):
            ways = [asyncio.create_task(pump(reader, outer)), asyncio.create_task(pump(inner, writer))]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()


async def serve(pairs: list[tuple[int, str]], ready: str | None) -> None:
    """Listen on every port, say so, and go on for ever."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # a connection that breaks is nobody's business here
    servers = []
    for port, door in pairs:

        async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: str = door) -> None:
            await join(reader, writer, door)

        servers.append(await asyncio.start_server(joined, "127.0.0.1", port, limit=PIECE))
    if ready == "-":
        sys.stdout.write("ready\n")
        sys.stdout.flush()
    elif ready:
        Path(ready).write_text("ready\n", encoding="utf-8")
    await loop.create_future()


def main(arguments: list[str]) -> None:
    """Read the command line."""
    ready = None
    if arguments[:1] == ["--ready"] and len(arguments) > 1:
        ready, arguments = arguments[1], arguments[2:]
    pairs = [(port, door) for port, _, door in (each.partition("=") for each in arguments)]
    if not pairs or not all(port.isdigit() and door for port, door in pairs):
        sys.exit("usage: relay [--ready FILE|-] PORT=SOCKET ...")
    asyncio.run(serve([(int(port), door) for port, door in pairs], ready))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
