"""A page of a bundle, read as a reader without eyes would: each value with its pointer, and what is typed without one.

An element with `data-at` shows the value that its pointer leads to, in the way that `data-as` names; one with
`data-ref` shows the pointer itself. Everywhere else no digit may stand, in text, in an attribute that is read out or in
a style's `content`, and nothing may be loaded or run.
Pages are read strictly: a few elements, quoted attributes, no comment, every element closed. What is written otherwise
is a fault and not guessed at, since a browser might guess something else.
Not covered: numbers in words, and what a stylesheet hides or moves; hold the page against its JSON to be sure.
"""

import base64
import hashlib
import re
from html import unescape
from typing import NamedTuple

_ELEMENTS = """
    html head meta title style body header nav main section article footer a p h1 h2 h3 h4 h5 h6 div span br hr small
    strong em abbr time data code pre q blockquote dl dt dd ul li details summary figure figcaption table caption thead
    tbody tfoot tr th td
"""
VOID = frozenset(["meta", "br", "hr"])
_ATTRIBUTES = """
    class id lang href charset name content http-equiv role tabindex scope colspan rowspan datetime value open title
    aria-label aria-labelledby aria-hidden aria-describedby data-at data-as data-ref
"""
ELEMENTS, ATTRIBUTES = frozenset(_ELEMENTS.split()), frozenset(_ATTRIBUTES.split())
READ_OUT = ("aria-label", "title")
TOKEN = re.compile(
    r"(?P<text>[^<]+)|<(?P<tag>[a-z][a-z0-9]*)(?P<given>(?: [a-z-]+(?:=\"[^\"]*\")?){0,16})>|</(?P<end>[a-z][a-z0-9]*)>"
)
ATTRIBUTE = re.compile(r" ([a-z-]+)(?:=\"([^\"]*)\")?")
DOCTYPE = "<!doctype html>"
STYLED = re.compile(
    r"content\s*:[^;}]*(?:\d|\\|attr|counter)|counter|url\(|image-set|@import|@font-face|list-style[^:;}]*:(?!\s*none\b)",
    re.IGNORECASE,
)
"""What could write a number or load something in a style."""
ABSOLUTE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:|//|\\|/)", re.IGNORECASE)
META = ("color-scheme", "referrer", "viewport", "description")
POLICY = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
MOST, DEEPEST = 200_000, 100
"""Pointers on one page; elements in one another."""


class Cell(NamedTuple):
    """A place of a page that says where its text comes from."""

    pointer: str
    way: str | None
    """`None`: the text is the pointer itself."""
    text: str
    line: int
    value: str | None
    """The attribute of a `data` element."""


def policy(style: str) -> str:
    """The policy of a page with this style: nothing but the style, held by its digest."""
    return POLICY.format(base64.b64encode(hashlib.sha256(style.encode()).digest()).decode())


class Sheet:
    """One page, taken apart."""

    def __init__(self, text: str) -> None:
        self.cells: list[Cell] = []
        self.faults: list[tuple[str, str]] = []
        """Code and what is wrong."""
        self.line = 1
        self.style = self.told = ""
        self._open: list[str] = []
        self._cell: tuple[int, Cell] | None = None
        self._text: list[str] = []
        self._read(text)
        if self.told != policy(self.style):
            self.fault("EXTERNAL", f"its policy (Content-Security-Policy) is not {policy(self.style)!r}")

    def fault(self, code: str, why: str) -> None:
        """One fault, with its line."""
        if len(self.faults) < MOST:
            self.faults.append((code, f"line {self.line}: {why}"))

    def _read(self, text: str) -> None:
        at = len(text) - len(text.lstrip())
        if text[at : at + len(DOCTYPE)].lower() != DOCTYPE:
            self.fault("MALFORMED", f"does not begin with {DOCTYPE}")
            return
        at += len(DOCTYPE)
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                self.fault("MALFORMED", f"not plain markup from {text[at : at + 40]!r} on; the rest is not read")
                return
            if match["text"] is not None:
                self._words(unescape(match["text"]))
            elif match["tag"] is not None and len(self._open) < DEEPEST:
                self._begin(match["tag"], match["given"])
            elif match["tag"] is not None:
                self.fault("MALFORMED", f"more than {DEEPEST} elements in one another; the rest is not read")
                return
            elif not self._end(match["end"]):
                return
            self.line += text.count("\n", at, match.end())
            at = match.end()
            if match["tag"] == "style":
                end = text.find("</style>", at)
                self.style += text[at:end] if end >= 0 else ""
                if end < 0 or STYLED.search(text, at, end):
                    self.fault("TYPED", "a style that writes numbers or loads something, or does not end")
                at = max(end, at)
        if self._open:
            self.fault("MALFORMED", f"<{self._open[-1]}> does not end")

    def _words(self, text: str) -> None:
        if self._cell is not None:
            self._text.append(text)
        elif any(map(str.isnumeric, text)):
            self.fault("TYPED", f"a number without a pointer: {' '.join(text.split())[:80]!r}")

    def _begin(self, tag: str, text: str) -> None:
        pairs = ATTRIBUTE.findall(text)
        given = {name: unescape(value) for name, value in pairs}
        if tag not in ELEMENTS:
            self.fault("EXTERNAL", f"<{tag}> is not allowed on a page")
        if len(given) != len(pairs):
            self.fault("MALFORMED", f"<{tag}> has an attribute twice")
        for name, value in given.items():
            self._attribute(tag, name, value)
        if tag == "meta":
            self._meta(given)
        if tag not in VOID:
            self._open.append(tag)
        if "data-at" not in given and "data-ref" not in given:
            return
        way = given.get("data-as", "text") if "data-at" in given else None
        if self._cell is not None or len(self.cells) >= MOST or tag in VOID:
            self.fault("TYPED", f"a pointer in another one's element, or more than {MOST:,} on a page")
            return
        pointer = given.get("data-at") or given.get("data-ref", "")
        self._cell, self._text = (len(self._open), Cell(pointer, way, "", self.line, given.get("value"))), []

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name not in ATTRIBUTES:
            self.fault("EXTERNAL", f"the attribute {name} is not allowed on a page")
        elif name == "href" and ABSOLUTE.match(value):
            self.fault("EXTERNAL", f"href={value[:80]!r} leads out of the bundle")
        elif name in READ_OUT and any(map(str.isnumeric, value)):
            self.fault("TYPED", f"a number without a pointer in {name}: {value[:80]!r}")

    def _meta(self, given: dict[str, str]) -> None:
        kind = given.get("http-equiv")
        if kind == "Content-Security-Policy":
            self.told = given.get("content", "")
        elif kind is not None or given.get("name", META[0]) not in META:
            self.fault("EXTERNAL", f"<meta> of a kind that is not allowed: {kind or given.get('name')!r}"[:200])

    def _end(self, tag: str) -> bool:
        """An element ends; false where another one should."""
        if not self._open or self._open[-1] != tag:
            self.fault("MALFORMED", f"</{tag}> ends nothing that is open; the rest is not read")
            return False
        if self._cell is not None and self._cell[0] == len(self._open):
            self.cells.append(self._cell[1]._replace(text="".join(self._text)))
            self._cell = None
        self._open.pop()
        return True
