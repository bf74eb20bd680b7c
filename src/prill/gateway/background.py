"""An event loop in a thread of its own, behind a UNIX socket: what the doors of a box have in common."""

import asyncio
import os
import stat
import threading
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

from prill.errors import InfraError

BACKLOG = 1024
"""Connections that may wait to be taken; one beyond is an error on the other side."""
LONGEST = 100
"""Bytes that the path of a UNIX socket may have, with a little to spare."""


class Background:
    """Subclasses say in `_open` how to serve on `socket`, and in `_close` how to end. A context manager."""

    socket: Path

    @property
    def sockets(self) -> tuple[Path, ...]:
        """All that it listens on."""
        return (self.socket,)

    def __enter__(self) -> "Background":
        for socket in self.sockets:
            clear(socket)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"prill-{self.socket.stem}", daemon=True)
        self._thread.start()
        try:
            self._wait(self._open())
            for socket in self.sockets:
                socket.chmod(0o600)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._close())
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()
            for socket in self.sockets:
                socket.unlink(missing_ok=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _open(self) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        raise NotImplementedError


def clear(socket: Path) -> None:
    """Make way for a socket: a dead one of the same name goes, anything else there is an error of ours."""
    if len(os.fspath(socket).encode()) > LONGEST:
        raise InfraError(f"{socket}: a socket's path has at most {LONGEST} bytes; use a shorter folder")
    if socket.exists():
        if not stat.S_ISSOCK(socket.lstat().st_mode):
            raise InfraError(f"{socket}: something that is no socket is in the way; remove it")
        socket.unlink()
    socket.parent.mkdir(parents=True, exist_ok=True)


async def end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their last words."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
