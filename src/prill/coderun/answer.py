"""Runs in the model's box: the model's code, asked over the socket that the box was given.

Nothing here is trusted: the code that it runs can take over this process, and gains only the right to send what an
honest one may send. It never learns what is expected. Limits set here are conveniences; those that hold are the box's.

Frames in: `L` load, `c` call, `p` run the program once. Out: `h` hello, `l` loaded, `v` value, `n` not a literal,
`r` raised, `m` nothing of that name, `o` what a run printed.
"""

import atexit
import builtins
import contextlib
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

from prill.coderun.frames import Gone, receive, send
from prill.coderun.literals import MOST, ROOM, NotLiteral, decode, encode


def main(place: str) -> None:
    """Connect, say hello, do the one job that comes."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(place)
        send(link, "h")
        job = decode(receive(link).payload, *ROOM)
        confine(job["memory_bytes"])
        sys.path = [path for path in sys.path if path != "/given"] + ["/given/packages"]
        with contextlib.suppress(Gone):
            programs(link, job) if job["program"] else functions(link, job)


def confine(memory_bytes: int) -> None:
    """No core files, so much address space, nothing to read from, nowhere to print to."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def load(job: dict[str, Any]) -> dict[str, Any]:
    """The names that the code defines; it runs as the main module."""
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    for text, name in ((job["prelude"], "<prelude>"), (job["code"], "<reply>")):
        exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what this box is for
    return module.__dict__


# --- functions --------------------------------------------------------------------------------------------


def functions(link: socket.socket, job: dict[str, Any]) -> None:
    """Load once, then answer calls."""
    try:
        wanted = target(load(job), job["entry_point"])
    except BaseException as error:
        send(link, "r", kind(error))
        return
    if wanted is None:
        send(link, "m")
        return
    send(link, "l")
    while True:
        arguments, named = decode(receive(link).payload, *ROOM)
        try:
            value = plain(wanted(*arguments, **named))
            reply = "v", encode(value)
        except NotLiteral as error:
            reply = "n", str(error).encode(errors="replace")[:200]
        except BaseException as error:
            reply = "r", kind(error)
        send(link, *reply)


def target(names: dict[str, Any], entry_point: str) -> Callable[..., Any] | None:
    """The function of that name, or the method of a `Solution`, as that site's tasks want it."""
    if "Solution" in names and entry_point not in names:
        return getattr(names["Solution"](), entry_point, None)
    return names.get(entry_point)


def kind(error: BaseException) -> bytes:
    """The nearest built-in class of an exception."""
    for each in type(error).__mro__:
        if getattr(builtins, each.__name__, None) is each:
            return str(each.__name__).encode()
    return b"Exception"


def plain(value: Any, left: list[int] | None = None) -> Any:
    """A result as tests would see it: subclasses of built-in types and numbers of numpy as the plain thing."""
    left = [MOST] if left is None else left
    left[0] -= 1
    if left[0] < 0:
        raise NotLiteral(f"more than {MOST} values in one")
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, int):
        return int.__pos__(value)
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, str):
        return str.__getitem__(value, slice(None))
    if isinstance(value, list):
        return [plain(inner, left) for inner in list.__iter__(value)]
    if isinstance(value, tuple):
        return tuple(plain(inner, left) for inner in tuple.__iter__(value))
    if isinstance(value, dict):
        return {plain(key, left): plain(inner, left) for key, inner in dict.items(value)}
    if isinstance(value, set | frozenset):
        return {plain(inner, left) for inner in value}
    return value


# --- programs ---------------------------------------------------------------------------------------------


def programs(link: socket.socket, job: dict[str, Any]) -> None:
    """Run the program as often as asked, each time in a process of its own; what one leaves behind is killed."""
    exec(job["prelude"], {})  # noqa: S102 - ours; what it imports is then there for every run
    send(link, "l")
    while True:
        outcome, printed = once(link, job, receive(link).payload)
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # all in this box but its first process and us
        send(link, "o", encode((outcome, printed), *ROOM))


def once(link: socket.socket, job: dict[str, Any], stdin: bytes) -> tuple[str, bytes]:
    """One run: how it ended and what it printed."""
    given = os.memfd_create("stdin")
    with os.fdopen(given, "wb", closefd=False) as file:
        file.write(stdin)
    os.lseek(given, 0, os.SEEK_SET)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(given, 0)
        os.dup2(writer, 1)
        link.close()
        os.closerange(3, 1 << 16)
        os._exit(perform(job))
    os.close(given)
    os.close(writer)
    try:
        return listen(child, reader, time.monotonic() + job["seconds"], job["output_bytes"])
    finally:
        os.close(reader)


def perform(job: dict[str, Any]) -> int:
    """The child's whole life: the program as the main module; its exit status. Leaving by `exit` is no failure."""
    code = 0
    try:
        os.setsid()
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
        load(job)
    except SystemExit:
        pass
    except MemoryError:
        code = 12
    except BaseException:
        code = 1
    try:
        leave()
        sys.stdout.flush()
    except BaseException:
        code = code or 1
    return code


def leave() -> None:
    """What Python does at its end and a fork's child must do by hand: wait for threads, run what waits for the end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def listen(child: int, reader: int, until: float, most: int) -> tuple[str, bytes]:
    """Take what is printed until the program ends, is late, or prints too much."""
    pieces: list[bytes] = []
    taken, open_ended, outcome = 0, True, ""
    end = os.pidfd_open(child)
    try:
        while not outcome:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([end, reader] if open_ended else [end], [], [], left)
            if reader in ready:
                piece = os.read(reader, 1 << 16)
                open_ended, taken = bool(piece), taken + len(piece)
                pieces.append(piece)
                outcome = "too much output" if taken > most else ""
            elif end in ready:
                break
            elif not ready:
                outcome = "timeout"
    finally:
        os.close(end)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    ended = {0: "ended", 12: "memory"}.get(code, "exception" if code > 0 else "died")
    return outcome or ended, b"".join(pieces)[:most]
