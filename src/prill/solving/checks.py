"""The door for self-checks: an agent asks on a UNIX socket, a process of its own does the check, the answer comes back.

As many as the budget grants, one at a time. What is used up is counted by the files in `selfchecks/`, which the box
cannot reach, so neither an agent nor a keeper that died and came back gets more. A check that ends by our doing leaves
no file and does not count; the wallet is never touched. Whoever asks may hang up: the check goes on and counts.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from prill.catalog import Catalog
from prill.folder import RunFolder
from prill.gates import left

LONGEST = 4096
"""Bytes of a request."""
PATIENCE_SECONDS = 10.0
"""For a request to come, and for each line to be taken."""
WAITING = 8
"""Callers at a time; what is beyond is hung up on."""


class Checks:
    """The open door; it closes, and a check under way ends, with the context."""

    def __init__(self, run: RunFolder, granted: int, catalog: Catalog, place: Path) -> None:
        self.run, self.granted, self.folders, self.place = run, granted, catalog.folders[:-1], place
        self.busy, self.callers = threading.Lock(), threading.Semaphore(WAITING)
        self.listening = socket.socket(socket.AF_UNIX)
        self.program: subprocess.Popen[bytes] | None = None
        self.closed = False

    def __enter__(self) -> "Checks":
        self.listening.bind(str(self.place))
        self.listening.listen(WAITING)
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.closed = True
        with contextlib.suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        if program := self.program:
            program.kill()
            program.wait()
        with self.busy:
            shutil.rmtree(self.run.path / ".checking", ignore_errors=True)

    def listen(self) -> None:
        """Take callers until the door closes."""
        while not self.closed:
            try:
                caller, _ = self.listening.accept()
            except OSError:
                return
            if not self.callers.acquire(blocking=False):
                caller.close()
                continue
            threading.Thread(target=self.served, args=(caller,), daemon=True).start()

    def served(self, caller: socket.socket) -> None:
        """One caller, to the last word."""
        with caller:
            caller.settimeout(PATIENCE_SECONDS)
            gone = False
            try:
                for told in self.answer(wish(caller)):
                    try:
                        if not gone:
                            caller.sendall(json.dumps(told).encode() + b"\n")
                    except OSError:
                        gone = True
            finally:
                self.callers.release()

    def answer(self, wished: str) -> Iterator[dict[str, Any]]:
        """What is said to one wish; the last word says how many are left."""
        if wished == "left":
            yield self.last()
        elif wished != "check":
            yield self.last(refused='say {"do": "check"} or {"do": "left"}')
        elif not self.busy.acquire(blocking=False):
            yield self.last(refused="a check is under way; wait for it")
        else:
            try:
                yield from self.check()
            finally:
                self.busy.release()

    def check(self) -> Iterator[dict[str, Any]]:
        """One check, if any are left."""
        if not left(self.used(), self.granted):
            many = "the only self-check is" if self.granted == 1 else f"all {self.granted} self-checks are"
            yield self.last(refused=f"{many} used; `evaluate` goes on as before")
            return
        number, final = self.used() + 1, dict[str, Any]()
        argv = [sys.executable, "-m", "prill.selfcheck", str(self.run.path), str(number), *map(str, self.folders)]
        with (self.run.solving / "check.txt").open("ab") as said:
            self.program = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        with self.program as program:
            if self.closed:
                program.kill()
            assert program.stdout is not None
            for line in program.stdout:
                told = read(line)
                if "say" in told:
                    yield told
                final = told or final
        self.program = None
        if self.used() >= number and "result" in final:
            result = final["result"]
            self.run.append(
                "self_checked", "solve", number=number, status=result["status"], passed=result["passed"],
                gates=result["gates_in_all"], digest=result["digest"],
            )  # fmt: skip
            yield self.last(**final)
        else:
            why = final.get("failed") or f"it ended with exit code {program.returncode}"
            yield self.last(refused=f"the check was not possible, which is not your doing and does not count: {why}")

    def used(self) -> int:
        """How many are used up."""
        return len(list(self.run.selfchecks.glob("[0-9]*.json")))

    def last(self, **words: Any) -> dict[str, Any]:
        """A last word."""
        return words | {"left": left(self.used(), self.granted), "granted": self.granted}


def wish(caller: socket.socket) -> str:
    """What a caller wants, whatever it sends."""
    said = b""
    with contextlib.suppress(OSError):
        while b"\n" not in said and len(said) < LONGEST and (piece := caller.recv(LONGEST)):
            said += piece
    return str(read(said).get("do"))[:20]


def read(line: bytes) -> dict[str, Any]:
    """The object in a line; an empty one where there is none."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
