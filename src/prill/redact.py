"""Secrets out of text before it is kept or shown: rules S1 to S5 of RULES.md on publishing.

Three nets, one behind the other: values that are known (S1), shapes of keys (S2), values in places that are named after
a secret (S3). Not covered: a secret that is none of these, one that was encoded, and one cut to less than ten
characters.
"""

import re
from collections.abc import Mapping

SHORTEST = 8
"""Characters of a value that is searched for (S4)."""
_ANCHOR = 10
"""Characters at the start of a value that give it away (S1)."""
_GONE = "[redacted]"

# --- known values (S1) --------------------------------------------------------------------------------------------

_BREAK = r"(?:(?:\r?\n|\\r\\n|\\n)[ \t]{0,8})?"
"""Where a terminal may have wrapped a value, also inside JSON text."""
_NO_SECRETS = frozenset(
    ("PATH", "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "HOSTNAME", "TMPDIR")
)


def _known(text: str, name: str, value: str, least: int) -> str:
    """Text without a value of which at least so many characters stand there, wrapped or not; line breaks stay."""
    anchor = re.compile(_BREAK.join(map(re.escape, value[:least])))
    step = re.compile(_BREAK)
    pieces: list[str] = []
    at = 0
    while found := anchor.search(text, at):
        end = found.end()
        for char in value[least:]:
            gap = step.match(text, end)
            behind = gap.end() if gap else end
            if text[behind : behind + 1] != char:
                break
            end = behind + 1
        breaks = re.findall(r"\r?\n|\\r\\n|\\n", text[found.start() : end])
        pieces += [text[at : found.start()], f"[{name}]", *breaks]
        at = end
    return "".join([*pieces, text[at:]])


# --- shapes (S2) --------------------------------------------------------------------------------------------------

_BEFORE = r"(?P<before>^|[^A-Za-z0-9]|(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;]*m|\\[nrtbf]|%[0-9A-Fa-f]{2})"
_SHAPES = (
    r"sk-(?:ant|proj|or|svcacct|admin|lf)-[A-Za-z0-9_-]{16,}",
    r"sk-(?=[A-Za-z0-9_-]{0,60}[0-9])[A-Za-z0-9_-]{20,}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"hf_[A-Za-z0-9]{20,}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"A(?:KIA|SIA)(?=[A-Z]{0,15}[0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"dtn_[A-Za-z0-9]{20,}",
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{16,}",
    r"(?:gsk|r8|npm|tgp_v1|fw)_[A-Za-z0-9_-]{24,}|(?:xai|pplx|nvapi|tvly|e2b)[-_][A-Za-z0-9_-]{20,}",
    r"pypi-[A-Za-z0-9_-]{40,}",
    r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]*",
)
_SHAPE = re.compile(_BEFORE + "(?:" + "|".join(_SHAPES) + ")")
_PRIVATE = re.compile(r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)[^-]{1,20000}(-----END|$)")

# --- places (S3) --------------------------------------------------------------------------------------------------

_SECRET_NAME = (
    r"(?P<name>api[_-]?key|(?:access|secret|private|auth)[_-]?key|secret|password|passwd|passphrase|authorization"
    r"|token|credentials?|cookie)"
)
_QUOTE = r"\\{0,3}[\"']"
_IS = rf"(?:{_QUOTE})?\s{{0,3}}(?::=|[:=])\s{{0,3}}"
_SCHEME = r"(?:bearer\s+|basic\s+|token\s+)?"
_QUOTED = re.compile(rf"{_SECRET_NAME}(?P<head>{_IS}{_QUOTE}{_SCHEME})(?P<value>[^\"'\\\n]{{8,}})", re.IGNORECASE)
_BARE = re.compile(rf"{_SECRET_NAME}(?P<head>{_IS}{_SCHEME}|[ =])(?P<value>[A-Za-z0-9._~+/=%-]{{8,}})", re.IGNORECASE)
_HARMLESS = re.compile(
    r"(?:eos|bos|pad|unk|mask|sep|cls|image|video|audio|special|stop|next|prev|last|first|max|min|num|n|per|input|output"
    r"|prompt|completion|cached|reasoning|total|chat|start)[_-]?$",
    re.IGNORECASE,
)
"""What before `token` makes it a piece of text."""
_VARIABLE = ("$", "<", "[", "{")
"""How a value begins that only stands for one."""
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{1,100}:)[^\s/@\"']{8,200}(@)", re.IGNORECASE)


def _before(place: re.Match[str]) -> str:
    return place.string[max(0, place.start() - 24) : place.start()]


def _no_secret(place: re.Match[str]) -> bool:
    return place["value"].startswith(_VARIABLE) or (
        place["name"].lower() == "token" and bool(_HARMLESS.search(_before(place)))
    )


def _hide_quoted(place: re.Match[str]) -> str:
    return place[0] if _no_secret(place) else place["name"] + place["head"] + _GONE


def _hide_bare(place: re.Match[str]) -> str:
    """Without quotes a value counts in a header, a URL, an option or a variable's assignment; elsewhere only if it is
    made of letters and figures, for code and prose say `token = tokenizer` too."""
    before, sign = _before(place), place["head"].strip(" \t\"'\\").lower()
    option = re.search(r"--?[a-z-]*$", before) is not None
    header = sign[:1] == ":" and ("-" in place["name"] + before[-1:] or len(sign) > 1)
    assigned = sign == "=" and (place["name"].isupper() or re.search(r"[?&][\w-]*$", before) is not None)
    mixed = re.search("[0-9]", place["value"]) and re.search("[A-Za-z]", place["value"])
    secret = option if not sign else option or header or assigned or mixed
    return place["name"] + place["head"] + _GONE if secret and not _no_secret(place) else place[0]


def redact(text: str, secrets: Mapping[str, str]) -> str:
    """Text with every secret replaced by its name or by a word (S1 to S5). What surrounds it stays as it is.

    `secrets`: names of variables and their values; empty and short values are never searched for (S4).
    """
    values = [(name, value.strip()) for name, value in secrets.items() if name not in _NO_SECRETS]
    values = sorted((pair for pair in values if len(pair[1]) >= SHORTEST), key=lambda pair: -len(pair[1]))
    for name, value in values:
        text = _known(text, name, value, len(value))
    for name, value in values:
        text = _known(text, name, value, min(_ANCHOR, len(value)))
    text = _PRIVATE.sub(rf"\1{_GONE}\2", text)
    text = _SHAPE.sub(rf"\g<before>{_GONE}", text)
    text = _BARE.sub(_hide_bare, _QUOTED.sub(_hide_quoted, text))
    return _USERINFO.sub(rf"\1{_GONE}\2", text)
