"""A function of the model's held against tests: HumanEval's assertions, or arguments with the value that is right.

Assertions run in a box of their own and call the model's function through us: two boxes and no way between them but
this relay, which carries values without reading them.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prill.coderun.frames import Frame, Gone, Late, TooLong
from prill.coderun.literals import ROOM, NotLiteral, decode, encode
from prill.coderun.peers import Limits, Peer, peer
from prill.coderun.verdicts import Clock, Fault, Reason, Verdict, ask, told
from prill.errors import InfraError
from prill.sockets import Sandbox

TESTS_SECONDS = 60.0
"""For the tests' own part of the work."""


@dataclass(frozen=True)
class Code:
    """What the model's process loads, and what it is asked for."""

    text: str
    entry_point: str = ""
    prelude: str = ""
    """Runs before it, in the same names."""


def loading(code: Code, limits: Limits, *, program: bool = False) -> bytes:
    """The first thing that the model's process is told. Raises `Fault` for a text that is too long."""
    job = {
        "code": code.text,
        "entry_point": code.entry_point,
        "prelude": code.prelude,
        "program": program,
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
    }
    try:
        return encode(job)
    except NotLiteral as error:
        raise Fault("no code", str(error)) from None


# --- assertions -------------------------------------------------------------------------------------------


def check_function(sandbox: Sandbox, code: Code, prompt: str, test: str, limits: Limits) -> Verdict:
    """Run `check(candidate)` of a test on the model's function. `prompt` is code that the test may use.

    Raises `InfraError` where a box fails, where prompt or test do not load, and where a test never asks for a value.
    """

    def work(clock: Clock) -> None:
        with peer(sandbox, "answer", limits) as answer, peer(sandbox, "checker", limits) as checker:
            ask(answer, "L", loading(code, limits), clock, "l")
            checker.hello()
            job = {"prompt": prompt, "test": test, "entry_point": code.entry_point}
            words = encode({**job, "memory_bytes": limits.memory_bytes})
            tell(checker, "L", words, time.monotonic() + TESTS_SECONDS)
            relay(answer, checker, clock)

    return told(limits, work)


def relay(answer: Peer, checker: Peer, clock: Clock) -> None:
    """Carry calls and values until the check is done. In peace only where it passed."""
    until, calls, excuse = time.monotonic() + TESTS_SECONDS, 0, ""
    while True:
        frame = heard(checker, until, calls)
        if frame.kind == "c":
            calls += 1
            began = time.monotonic()
            reply = ask(answer, "c", frame.payload, clock, "vr")
            until += time.monotonic() - began
            excuse = reply.payload[:80].decode("ascii", "replace") if reply.kind == "r" else ""
            if not is_ordinary(excuse):
                raise Fault("exit" if excuse == "SystemExit" else "exception", excuse)
            tell(checker, reply.kind, reply.payload, until)
        elif frame.kind == "d" and not frame.payload and calls:
            return
        elif frame.kind == "d" and calls:
            words = frame.payload.decode(errors="replace")
            reason: Reason = "wrong" if excuse != words else "memory" if words == "MemoryError" else "exception"
            raise Fault(reason, words)
        elif frame.kind == "x":
            raise Fault("not a literal", frame.payload.decode(errors="replace"))
        else:
            words = frame.payload.decode(errors="replace") or "they never ask for a value, so anything would pass"
            raise InfraError(f"an item's tests are broken: {words}")


def tell(checker: Peer, kind: str, payload: bytes, until: float) -> None:
    """Say something to the checker, which is ours and listens."""
    try:
        checker.send(kind, payload, until)
    except (Gone, Late):
        raise InfraError("the process that runs an item's tests does not listen") from None


def heard(checker: Peer, until: float, calls: int) -> Frame:
    """What the checker says next. It is ours, so its death is `InfraError`; but values may keep it busy for ever."""
    try:
        return checker.receive(until, ROOM[0])
    except Late:
        if calls:
            raise Fault("timeout", "the tests do not get done with the values that they were given") from None
        raise InfraError(f"an item's tests took more than {TESTS_SECONDS:g} s before they asked for a value") from None
    except (Gone, TooLong):
        if calls and checker.out_of_memory():
            raise Fault("memory", "the tests ran out of memory over the values that they were given") from None
        raise InfraError("the process that runs an item's tests died") from None


def is_ordinary(name: str) -> bool:
    """Whether tests may catch an exception of that name. Leaving the process is not one of those."""
    return name not in ("SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException")


# --- arguments and values ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """Arguments, and the value that is right."""

    arguments: tuple[Any, ...]
    expected: Any


def call_function(sandbox: Sandbox, code: Code, calls: Sequence[Call], limits: Limits) -> Verdict:
    """Call the model's function with each arguments until a value is wrong. `limits.seconds` holds for each call.

    As LiveCodeBench has it, values are compared with `==`, and a tuple counts as a list.
    """

    def work(clock: Clock) -> None:
        with peer(sandbox, "answer", limits) as answer:
            ask(answer, "L", loading(code, limits), clock, "l")
            for number, call in enumerate(calls, 1):
                clock.left = limits.seconds
                frame = ask(answer, "c", encode((list(call.arguments), {}), *ROOM), clock, "v")
                try:
                    value = decode(frame.payload)
                except NotLiteral as error:
                    raise Fault("not a literal", str(error)) from None
                if (list(value) if isinstance(value, tuple) else value) != call.expected:
                    raise Fault("wrong", f"test {number} of {len(calls)}")

    return told(limits, work)
