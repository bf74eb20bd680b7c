"""What came of one sample's code, and how the model's faults are told from ours.

A fault of the model is a value with a reason; what is ours is `InfraError` and never a verdict. Once the model's
process has said hello, whatever it does or fails to do is the model's: otherwise code could hold up a measurement.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from prill.coderun.frames import Frame, Gone, Late, TooLong
from prill.coderun.literals import LARGEST
from prill.coderun.peers import Limits, Peer

Reason = Literal[
    "", "no code", "missing", "exception", "exit", "died", "timeout", "memory", "too much output", "not a literal",
    "wrong",
]  # fmt: skip
"""`missing`: it defines nothing of the name that is asked for. `died`: its process ended without an answer."""


@dataclass(frozen=True)
class Verdict:
    """Whether the code passed; if not, why; and the limit that really applied."""

    passed: bool
    reason: Reason
    detail: str
    limit_seconds: float
    used_seconds: float
    """Waiting for the model's code."""


class Fault(Exception):
    """The model's doing: it ends the sample."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason: Reason = reason
        self.detail = detail


class Clock:
    """The time that is left for waiting on the model's code."""

    def __init__(self, seconds: float) -> None:
        self.left, self.used = seconds, 0.0


def ask(peer: Peer, kind: str, payload: bytes, clock: Clock, expected: str, longest: int = LARGEST) -> Frame:
    """One question to the model's process, one answer of an expected kind. Raises `Fault`."""
    peer.hello()
    began = time.monotonic()
    try:
        peer.send(kind, payload, began + clock.left)
        frame = peer.receive(began + clock.left, longest)
    except Late:
        raise Fault("timeout") from None
    except TooLong as error:
        raise Fault("too much output", str(error)) from None
    except Gone:
        raise Fault("memory" if peer.out_of_memory() else "died") from None
    finally:
        took = time.monotonic() - began
        clock.left, clock.used = clock.left - took, clock.used + took
    if frame.kind in expected:
        return frame
    raise fault(frame)


def fault(frame: Frame) -> Fault:
    """What the model's process says of itself."""
    words = frame.payload[:200].decode("ascii", "replace")
    if frame.kind == "r":
        reasons: dict[str, Reason] = {"SystemExit": "exit", "MemoryError": "memory"}
        return Fault(reasons.get(words, "exception"), words)
    if frame.kind == "n":
        return Fault("not a literal", words)
    return Fault("missing") if frame.kind == "m" else Fault("died", "it spoke out of turn")


def told(limits: Limits, work: Callable[[Clock], None]) -> Verdict:
    """Do the work; where it ends in peace the sample has passed, and a `Fault` becomes a verdict."""
    clock = Clock(limits.seconds)
    try:
        work(clock)
    except Fault as found:
        limit = f"{limits.seconds:g} s" if found.reason == "timeout" else ""
        return Verdict(False, found.reason, found.detail or limit, limits.seconds, clock.used)
    return Verdict(True, "", "", limits.seconds, clock.used)
