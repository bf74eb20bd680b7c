"""What an OpenAI-compatible server sent, read: an `Answer`, which the model owns, or a `Lapse`, which the machine owns.

Bytes in, values out. Not covered: several choices in one reply; the first is read.
"""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from prill.record import Call, Stop
from prill.sockets import Value

STOPS: dict[str, Stop] = {
    "stop": "stop",
    "eos": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "content_filter": "refused",
}
"""What servers say about why they stopped → what we call it."""
CONTEXT = re.compile(r"context.(?:length|window|size)|max_model_len|max(?:imum)? (?:model|sequence|input) len", re.I)
MEMORY = re.compile(r"out of memory|OutOfMemory|oom[- ]kill|cannot allocate memory|not enough memory|bad_alloc", re.I)


class Answer(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What the model owns of one exchange."""

    id: str
    stop: Stop
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    attempts: int = 1
    room: bool = True
    """False where prompt and token limit together do not fit the context window, so that nothing was generated."""
    why: str = ""


class Lapse(Exception):
    """One exchange that the machine spoiled."""

    def __init__(self, kind: str, why: str, *, wait: float | None = None, again: bool = True) -> None:
        """`wait`: seconds that the server asked for. `again`: whether asking once more may help."""
        super().__init__(f"{kind}: {why}" if why else kind)
        self.kind, self.wait, self.again = kind, wait, again


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str | dict[str, Any] = ""


class _ToolCall(msgspec.Struct):
    function: _Function


class _Message(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    finish_reason: str
    message: _Message | None = None
    text: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_decoder = msgspec.json.Decoder(_Completion)


def read(id: str, body: bytes) -> Answer:
    """One answer out of the bytes of a 200. Raises `Lapse` for whatever is not a completion."""
    completion = decoded(body)
    if not completion.choices or completion.choices[0].finish_reason not in STOPS:
        raise Lapse("wrong JSON", f"no choice that ended in one of {sorted(STOPS)}; it begins {body[:200]!r}")
    choice, usage = completion.choices[0], completion.usage or _Usage()
    message = choice.message or _Message(content=choice.text)
    text, stop = message.content or "", STOPS[choice.finish_reason]
    calls = tuple(map(call_of, message.tool_calls or ()))
    if message.refusal:
        text, stop = text or message.refusal, "refused"
    elif stop == "stop" and not text.strip() and not calls:
        stop = "empty"
    return Answer(
        id=id,
        stop=stop,
        text=text,
        reasoning=message.reasoning or message.reasoning_content or "",
        calls=calls,
        tokens_in=usage.prompt_tokens,
        tokens_out=usage.completion_tokens,
    )


def decoded(body: bytes) -> _Completion:
    """The bytes as a completion, or a `Lapse` that says what they are instead."""
    try:
        body.isascii() or body.decode()
        return _decoder.decode(body)
    except UnicodeDecodeError as error:
        raise Lapse("not UTF-8", f"{error.reason} at byte {error.start}") from None
    except msgspec.ValidationError as error:
        raise Lapse("wrong JSON", str(error)) from None
    except msgspec.DecodeError as error:
        html = body.lstrip()[:1] == b"<"
        raise Lapse("HTML, not JSON" if html else "not JSON", f"{error}; it begins {body[:60]!r}") from None


def call_of(call: _ToolCall) -> Call:
    """A tool call with its arguments as text; some servers send them as an object."""
    arguments = call.function.arguments
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Call(name=call.function.name, arguments=text)


def complaint(id: str, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """What a status other than 200 means: an answer where the context window is too small, else `Lapse`."""
    said = " ".join(body[:500].decode(errors="replace").split())
    if status in (400, 413, 422) and CONTEXT.search(said):
        return Answer(id=id, stop="length", room=False, why=f"the context window is too small: {said[:300]}")
    if status >= 500 and MEMORY.search(said):
        raise Lapse("memory", said, again=False)
    wait = None
    if status in (429, 503):
        wait = retry_after(headers.get("Retry-After", ""), time.time())
        wait = 1.0 if wait is None and status == 429 else wait
    raise Lapse(f"status {status}", said, wait=wait, again=status >= 500 or status in (408, 409, 425, 429))


def retry_after(value: str, now: float) -> float | None:
    """Seconds to wait, from a number or a date; `None` where the header says neither."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None
