"""The page of a bundle: one HTML file that shows what its JSON says, each value by its pointer.

A template holds words and order, never a number: values come in through `see`, which looks a pointer up and writes it
into an element that names it. `sheets.py` reads the same elements back. The stylesheet stands in the page, held by its
digest in the page's policy, so that nothing is loaded and nothing runs.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from prill.audit.bundle import DERIVATIONS, MANIFEST
from prill.audit.pointers import join, resolve
from prill.audit.sheets import STYLED, policy
from prill.audit.shown import shown

TEMPLATES = ("audit", "record")
"""How the names of the templates of pages of bundles begin."""
STYLES = ("style.css", "audit.css")


class Sheaf:
    """What a template may ask of a bundle: values by pointer, and what was asked for so far."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.documents = documents
        derivations = documents.get(DERIVATIONS, {})
        self.how = {entry["value"]: n for n, entry in enumerate(derivations.get("derived", ()))}
        self.source = {entry["under"]: n for n, entry in enumerate(derivations.get("observed", ()))}
        self.asked: dict[str, str] = {}
        """Pointer → how it was shown, in order."""

    def get(self, pointer: str) -> Any:
        """What a pointer leads to. Raises `Unsound`."""
        return resolve(self.documents, pointer)

    def has(self, file: str) -> bool:
        """Whether the bundle has such a JSON file."""
        return file in self.documents

    def see(self, pointer: str, way: str = "text", tag: str = "", ledger: bool = True) -> Any:
        """The element that shows a value, linked to its JSON."""
        from markupsafe import Markup, escape

        value = self.get(pointer)
        if ledger:
            self.asked.setdefault(pointer, way)
        attributes = f' data-at="{escape(pointer)}" data-as="{escape(way)}"'
        if not tag and isinstance(value, int | float) and not isinstance(value, bool):
            tag, attributes = "data", f'{attributes} value="{escape(shown(value, "text"))}"'
        tag = tag or "span"
        return Markup(f"<{tag}{attributes}>{escape(shown(value, way))}</{tag}>")

    def at(self, pointer: str) -> Any:
        """A pointer as a link to its file."""
        from markupsafe import Markup, escape

        self.get(pointer)
        return Markup(
            f'<a class="at" href="{escape(href(pointer))}" data-ref="{escape(pointer)}">{escape(pointer)}</a>'
        )

    def ref(self, pointer: str) -> Any:
        """A pointer as text."""
        from markupsafe import Markup, escape

        self.get(pointer)
        return Markup(f'<span class="at" data-ref="{escape(pointer)}">{escape(pointer)}</span>')

    def value(self, pointer: str, way: str = "text") -> Any:
        """A value within a link to its JSON."""
        from markupsafe import Markup, escape

        return Markup(f'<a class="seen" href="{escape(href(pointer))}">{self.see(pointer, way)}</a>')

    def derivation(self, pointer: str) -> str | None:
        """Pointer to how a value was derived."""
        number = self.how.get(pointer)
        return None if number is None else join(DERIVATIONS, "derived", number)

    def observation(self, pointer: str) -> str | None:
        """Pointer to the observation that a value is part of."""
        while pointer not in self.source:
            shorter, slash, _ = pointer.rpartition("/")
            if not slash or "#" not in shorter:
                return None
            pointer = shorter
        return join(DERIVATIONS, "observed", self.source[pointer])

    def file_digest(self, file: str) -> str | None:
        """Pointer to the digest of a file."""
        for number, entry in enumerate(self.documents[MANIFEST]["files"]):
            if entry["path"] == file:
                return join(MANIFEST, "files", number, "sha256")
        return None

    def by_file(self) -> dict[str, list[str]]:
        """The pointers that were shown, by file."""
        found: dict[str, list[str]] = {}
        for pointer in self.asked:
            found.setdefault(pointer.partition("#")[0], []).append(pointer)
        return found


def href(pointer: str) -> str:
    """A pointer as a relative link."""
    file, _, place = pointer.partition("#")
    return f"{quote(file, safe='/')}#{quote(place, safe='/~')}"


def templates() -> dict[str, str]:
    """The templates and styles of the pages, as text."""
    found = [file for file in (files("prill") / "templates").iterdir() if file.name.startswith((*TEMPLATES, "style"))]
    return {file.name: file.read_text(encoding="utf-8") for file in found}


def render(documents: Mapping[str, Any], template: str = "audit.html", **words: Any) -> bytes:
    """A page over the JSON files of a bundle, its manifest among them. `words`: what else a template needs."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    texts = templates()
    lines = "".join(texts[name] for name in STYLES).splitlines(keepends=True)
    style = "\n" + "".join(line for line in lines if not STYLED.search(line))  # a style may not write numbers here
    room = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sheaf = Sheaf(documents)
    room.globals |= {
        "see": sheaf.see, "at": sheaf.at, "ref": sheaf.ref, "value": sheaf.value,
        "get": sheaf.get, "has": sheaf.has, "join": join,
        "derivation": sheaf.derivation, "observation": sheaf.observation, "file_digest": sheaf.file_digest,
        "by_file": sheaf.by_file, "ways": sheaf.asked, "style": Markup(style), "policy": policy(style),
    }  # fmt: skip
    return room.get_template(template).render(**words).encode()
