"""A whole program of the model's held against tests: what goes in, and what must be printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import get_args

from prill.coderun.functions import Code, loading
from prill.coderun.literals import ROOM, NotLiteral, decode
from prill.coderun.peers import Limits, peer
from prill.coderun.verdicts import Clock, Fault, Reason, Verdict, ask, told
from prill.sockets import Sandbox

GRACE_SECONDS = 10.0
"""Beyond a run's own limit, for the process that starts and ends it."""


@dataclass(frozen=True)
class Lines:
    """What goes in, and what must come out."""

    stdin: str
    expected: str


def run_program(sandbox: Sandbox, code: Code, tests: Sequence[Lines], limits: Limits) -> Verdict:
    """Run the program on each input, in a process of its own, until an output is wrong.

    `limits.seconds` holds for each run. Leaving by `exit` is no failure; an exception is, whatever was printed.
    """

    def work(clock: Clock) -> None:
        with peer(sandbox, "answer", limits) as answer:
            clock.left += GRACE_SECONDS
            ask(answer, "L", loading(code, limits, program=True), clock, "l")
            for number, test in enumerate(tests, 1):
                clock.left = limits.seconds + GRACE_SECONDS
                frame = ask(answer, "p", test.stdin.encode("utf-8", "surrogatepass"), clock, "o", ROOM[0])
                if not same_output(printed(frame.payload), test.expected):
                    raise Fault("wrong", f"test {number} of {len(tests)}")

    return told(limits, work)


def printed(payload: bytes) -> str:
    """What a run printed. Raises `Fault` where it did not end well."""
    try:
        outcome, output = decode(payload, *ROOM)
        if outcome == "ended":
            return bytes.decode(output, "utf-8", "replace")
    except (NotLiteral, TypeError, ValueError):
        raise Fault("died", "it spoke out of turn") from None
    raise Fault(outcome if outcome in get_args(Reason) else "died")


# --- the published comparison -----------------------------------------------------------------------------


def same_output(printed: str, expected: str) -> bool:
    """As LiveCodeBench compares: line by line without blanks around; a line of numbers by their values, exactly.

    Known to be lenient: `1e3` is 1000 and `1.50` is 1.5. Known to be strict: no tolerance, one blank line too many
    in the middle is wrong.
    """
    ours, theirs = stripped(printed), stripped(expected)
    return len(ours) == len(theirs) and all(map(same_line, ours, theirs))


def stripped(text: str) -> list[str]:
    """Lines without blanks around, and none that is empty at either end."""
    return [line.strip() for line in text.strip().split("\n")]


def same_line(ours: str, theirs: str) -> bool:
    """The same text, or the same numbers."""
    if ours == theirs:
        return True
    try:
        return [Decimal(word) for word in ours.split()] == [Decimal(word) for word in theirs.split()]
    except (ArithmeticError, ValueError):
        return False
