"""Runs in the tests' box: HumanEval's `check(candidate)`, where `candidate` asks the model's process elsewhere.

Trusted with the verdict; the model reaches it only by literals. Prompt and tests are a data set's, so they get a box
too. Frames out: `h` hello, `c` call, `d` done, `x` a value that spells no literal, `b` broken: the tests cannot be
run at all. In: `L` load, `v` value, `r` raised.

Not covered: arguments that a function changes for its caller to see, and identity: what comes back is a copy.
"""

import builtins
import contextlib
import resource
import socket
from typing import Any

from prill.coderun.frames import receive, send
from prill.coderun.literals import ROOM, NotLiteral, decode, encode


class Stop(BaseException):
    """Ends a check from within, past whatever its assertions catch."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind, self.words = kind, words


class Candidate:
    """The model's function, as the tests see it."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the model's function gives for these arguments, or raises."""
        try:
            asked = encode((list(arguments), named), *ROOM)
        except NotLiteral as error:
            raise Stop("b", f"a test calls the function with what is no literal: {error}") from None
        send(self.link, "c", asked)
        reply = receive(self.link)
        if reply.kind == "r":
            raise raised(reply.payload.decode("ascii", "replace"))
        try:
            return decode(reply.payload)
        except NotLiteral as error:
            raise Stop("x", str(error)) from None


def raised(name: str) -> Exception:
    """A built-in exception by name."""
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        try:
            return found()
        except TypeError:  # some want arguments
            return Exception(name)
    return Exception(name)


def main(place: str) -> None:
    """Connect, say hello, run the one check that comes, say how it ended."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(place)
        send(link, "h")
        job = decode(receive(link).payload, *ROOM)
        resource.setrlimit(resource.RLIMIT_AS, (job["memory_bytes"], job["memory_bytes"]))
        try:
            kind, words = verdict(job, Candidate(link))
        except Stop as stop:
            kind, words = stop.kind, stop.words
        send(link, kind, words.encode(errors="replace")[:2000])


def verdict(job: dict[str, Any], candidate: Candidate) -> tuple[str, str]:
    """`d` with nothing where the check ends in peace, with what it raised where not; `b` where there is no check."""
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        for part in (offered(job["prompt"]), job["test"]):
            exec(compile(part, "<tests>", "exec", dont_inherit=True), names)  # noqa: S102 - what this box is for
        check = names["check"]
    except Exception as error:
        return "b", f"prompt and tests cannot be loaded ({type(error).__name__}: {error})"
    names[job["entry_point"]] = candidate
    try:
        check(candidate)
    except Exception as error:
        return "d", type(error).__name__
    return "d", ""


def offered(prompt: str) -> str:
    """A prompt as a module: its last function may still lack a body; words instead of code offer nothing."""
    for ending in ("", "\n    pass"):
        with contextlib.suppress(SyntaxError, ValueError):
            compile(prompt.rstrip() + ending, "<prompt>", "exec", dont_inherit=True)
            return prompt.rstrip() + ending
    return ""
