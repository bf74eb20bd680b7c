"""Keys that are known by their shape (S2), and values in places that are named after a secret (S3), as spans.

Not covered: a key of a shape that is not listed here, a shape that is wrapped or whose letters are escaped, and a value
whose place has another name.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prill.redact.known import Span
from prill.redact.scan import Name

GONE = b"[redacted]"


class Shape(NamedTuple):
    """Keys that begin alike."""

    prefix: bytes
    whole: re.Pattern[bytes]


def _shapes(rest: bytes, *names: str) -> list[Shape]:
    return [Shape(name.encode(), re.compile(re.escape(name.encode()) + rest)) for name in names]


_BOTH = [f"{name}{sign}" for name in ("xai", "pplx", "nvapi", "tvly", "e2b") for sign in "-_"]
SHAPES = [
    *_shapes(
        rb"(?:(?:ant|proj|or|svcacct|admin|lf)-[A-Za-z0-9_-]{16,}|(?=[A-Za-z0-9_-]{0,60}[0-9])[A-Za-z0-9_-]{20,})",
        "sk-",
    ),
    *_shapes(rb"(?:live|test)_[A-Za-z0-9]{16,}", "sk_", "rk_", "pk_"),
    *_shapes(rb"[A-Za-z0-9]{20,}", "hf_", "dtn_"),
    *_shapes(rb"[A-Za-z0-9_-]{30,}", "AIza"),
    *_shapes(rb"[A-Za-z0-9_-]{20,}", "ya29."),
    *_shapes(rb"-----((?:(?:\s|\\[nr])*[A-Za-z-]{2,20}: [^\n\\]{1,100})*[A-Za-z0-9+/=\s\\]{16,20000})", "PRIVATE KEY"),
    *_shapes(rb"(?=[A-Z]{0,15}[0-9])[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA"),
    *_shapes(rb"[A-Za-z0-9]{30,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_shapes(rb"[A-Za-z0-9_]{30,}", "github_pat_"),
    *_shapes(rb"[A-Za-z0-9_-]{16,}", "glpat-"),
    *_shapes(rb"[A-Za-z0-9-]{16,}", *(f"xox{letter}-" for letter in "abeoprs")),
    *_shapes(rb"[A-Za-z0-9_-]{24,}", "gsk_", "r8_", "npm_", "tgp_v1_", "fw_"),
    *_shapes(rb"[A-Za-z0-9_-]{20,}", *_BOTH),
    *_shapes(rb"[A-Za-z0-9_-]{40,}", "pypi-"),
    *_shapes(rb"[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]*", "eyJ"),
]
_STARTS = re.compile(rb"(?:(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;]*m|\\[nrtbf]|%[0-9A-Fa-f]{2})\Z")
"""What ends in a letter or figure and is no part of a word."""
_WORD = re.compile(rb"[A-Za-z0-9_-]*")
PRIVATE_KEY, LONGEST_KEY, LONGEST_NAME = b"PRIVATE KEY", 20_000, 64
_HEAD = re.compile(rb"-----BEGIN [A-Z ]{0,30}\Z")


def by_shape(data: bytes, candidates: Iterable[tuple[int, Shape]]) -> list[Span]:
    """Keys of a known shape, of the places where their beginnings stand."""
    found: list[Span] = []
    done, word_end = 0, 0
    for start, shape in sorted(candidates, key=lambda candidate: candidate[0]):
        if start < done:
            continue
        if shape.prefix == PRIVATE_KEY:
            body = shape.whole.match(data, start) if _HEAD.search(data, max(0, start - 45), start) else None
            if body:
                found.append(Span(*body.span(1), GONE, "private key"))
            continue
        if not _begins(data, start):
            continue
        if shape.prefix == b"eyJ":  # what does not go on with a full stop is looked at once, however it repeats
            if start >= word_end:
                word = _WORD.match(data, start)
                word_end = word.end() if word else start
            if data[word_end : word_end + 1] != b".":
                continue
        match = shape.whole.match(data, start)
        if match:
            done = match.end()
            found.append(Span(start, done, GONE, f"shape {shape.prefix.decode()}"))
    return found


def _begins(data: bytes, start: int) -> bool:
    """Whether no letter or figure stands before, or only one that ends an escape code."""
    before = data[start - 1 : start] if start else b""
    return not before.isalnum() or _STARTS.search(data, max(0, start - 24), start) is not None


# --- places (S3) --------------------------------------------------------------------------------------------------

_SECRET_NAME = (
    rb"(?P<name>api[_-]?key|(?:access|secret|private|auth)[_-]?key|secret|password|passwd|passphrase|authorization"
    rb"|token|credentials?|cookie)"
)
_QUOTE = rb"\\{0,3}[\"']"
_IS = rb"(?:" + _QUOTE + rb")?\s{0,3}(?::=|[:=])\s{0,3}"
_SCHEME = rb"(?:bearer\s+|basic\s+|token\s+)?"
_QUOTED = re.compile(_SECRET_NAME + rb"(?P<head>" + _IS + _QUOTE + _SCHEME + rb")(?P<value>[^\"'\\\n]{8,})", re.I)
_BARE = re.compile(_SECRET_NAME + rb"(?P<head>" + _IS + _SCHEME + rb"|[ =])(?P<value>[A-Za-z0-9._~+/=%-]{8,})", re.I)
_HANGING = re.compile(
    _SECRET_NAME + rb"(?:" + _QUOTE + rb")?\s{0,3}(?:(?::=|[:=])\s{0,3}(?:" + _QUOTE + rb")?" + _SCHEME + rb")?\Z", re.I
)
_HARMLESS = re.compile(
    rb"(?:eos|bos|pad|unk|mask|sep|cls|image|video|audio|special|stop|next|prev|last|first|max|min|num|n|per|input"
    rb"|output|prompt|completion|cached|reasoning|total|chat|start)[_-]?\Z",
    re.I,
)
"""What before `token` makes it a piece of text."""
_VARIABLE = (b"$", b"<", b"[", b"{")
"""How a value begins that only stands for one."""
_KEY = re.compile(rb"(?:api|access|secret|private|auth)[_-]?\Z", re.I)
_OPTION = re.compile(rb"--?[A-Za-z-]*\Z")
_PARAMETER = re.compile(rb"[?&][\w-]*\Z")
_FIGURE, _LETTER = re.compile(rb"[0-9]"), re.compile(rb"[A-Za-z]")
_USER = re.compile(rb"[a-z][a-z0-9+.-]{1,15}\Z", re.I)
_USERINFO = re.compile(rb"[^\s/:@\"']{1,100}:([^\s/@\"']{8,200})@")


def by_place(data: bytes, candidates: Iterable[tuple[int, Name]]) -> list[Span]:
    """Values in places that are named after a secret, and passwords in URLs."""
    found: list[Span] = []
    done = {id(_QUOTED): 0, id(_BARE): 0}
    tries: tuple[tuple[re.Pattern[bytes], Callable[[re.Match[bytes]], bool]], ...] = (
        (_QUOTED, lambda match: True),
        (_BARE, _bare_secret),
    )
    for start in _names(data, candidates):
        for pattern, holds in tries:
            match = pattern.match(data, start) if start >= done[id(pattern)] else None
            if match is None:
                continue
            done[id(pattern)] = match.end()
            if not _stands_for(match) and holds(match):
                found.append(Span(*match.span("value"), GONE, f"place {match['name'].decode().lower()}"))
                break
    return found + _passwords(data)


def _names(data: bytes, candidates: Iterable[tuple[int, Name]]) -> list[int]:
    """Where names of places may begin, of the places of three letters in them."""
    starts = set()
    for place, name in candidates:
        key = _KEY.search(data, max(0, place - 8), place) if name.three == b"key" else None
        starts.add(key.start() if key else place - name.back)
    return sorted(start for start in starts if start >= 0)


def hangs(data: bytes, end: int) -> bool:
    """Whether the data end in the name of a place, so that its value may follow."""
    return _HANGING.search(data, max(0, end - LONGEST_NAME), end) is not None


def _before(match: re.Match[bytes]) -> bytes:
    return match.string[max(0, match.start() - 24) : match.start()]


def _stands_for(match: re.Match[bytes]) -> bool:
    """Whether the value only stands for one, or the place is one for a piece of text."""
    return match["value"].startswith(_VARIABLE) or (
        match["name"].lower() == b"token" and _HARMLESS.search(_before(match)) is not None
    )


def _bare_secret(match: re.Match[bytes]) -> bool:
    """Without quotes a value counts in a header, a URL, an option or a variable's assignment; elsewhere only if it is
    made of letters and figures, for code and prose say `token = tokenizer` too."""
    before, sign = _before(match), match["head"].strip(b" \t\"'\\").lower()
    if not sign:
        return _OPTION.search(before) is not None
    header = sign[:1] == b":" and (b"-" in match["name"] + before[-1:] or len(sign) > 1)
    assigned = sign == b"=" and (match["name"].isupper() or _PARAMETER.search(before) is not None)
    mixed = _FIGURE.search(match["value"]) and _LETTER.search(match["value"])
    return bool(_OPTION.search(before) or header or assigned or mixed)


def _passwords(data: bytes) -> list[Span]:
    found, done = [], 0
    at = data.find(b"@")
    while at >= 0:
        mark = data.rfind(b"://", max(done, at - 320), at) if data[at - 1 : at].strip(b"@'\" \n\t(") else -1
        match = _USERINFO.match(data, mark + 3) if mark > 0 and _USER.search(data, max(0, mark - 17), mark) else None
        if match:
            found.append(Span(*match.span(1), GONE, "URL password"))
            done = match.end()
        at = data.find(b"@", at + 1)
    return found
