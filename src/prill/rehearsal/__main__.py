"""`python -m prill.rehearsal SCENARIO (--socket PATH | --port N) [--truth FILE]`: plays it until TERM or Ctrl-C.

Prints `ready` and where it can be reached, once it can be.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from prill.errors import DefinitionError
from prill.rehearsal.scenario import read
from prill.rehearsal.server import Provider, serve


def main() -> int:
    """Serve until told to end."""
    options = argparse.ArgumentParser(prog="python -m prill.rehearsal", description="Play a scenario.")
    options.add_argument("scenario", type=Path, help="a scenario file (TOML)")
    place = options.add_mutually_exclusive_group(required=True)
    place.add_argument("--socket", metavar="PATH", help="listen on this UNIX socket")
    place.add_argument("--port", type=int, metavar="N", help="listen on this port of 127.0.0.1 (0: any free one)")
    options.add_argument("--truth", type=Path, metavar="FILE", help="append a line for each request to this file")
    options.add_argument("--attached", action="store_true", help="end when standard input does, as with a dead parent")
    chosen = options.parse_args()
    try:
        provider = Provider(read(chosen.scenario), chosen.truth)
    except (DefinitionError, OSError) as error:
        print(f"prill.rehearsal: {error}", file=sys.stderr)
        return 2
    asyncio.run(until_told(provider, chosen.socket, chosen.port, chosen.attached))
    return 0


async def until_told(provider: Provider, socket: str | None, port: int | None, attached: bool) -> None:
    """Serve until TERM or INT or, attached, until standard input ends."""
    serving = asyncio.ensure_future(serve(provider, socket, port, lambda where: print("ready", where, flush=True)))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    if attached:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os.read(0, 1) or serving.cancel())
    with contextlib.suppress(asyncio.CancelledError):
        await serving


if __name__ == "__main__":
    sys.exit(main())
