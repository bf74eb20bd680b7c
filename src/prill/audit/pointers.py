"""Places in JSON: strict reading, pointers of the form `FILE#/a/0/b`, and what they lead to.

Reading refuses what two readers could understand differently (duplicate keys, NaN, text that is not UTF-8) and what
costs more than it says (nesting beyond `DEEPEST`). A pointer's file lies in the bundle: no `..`, no root, no scheme.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

DEEPEST = 64
"""Levels of lists and objects in one file."""
NAME = re.compile(r"(?!\.\.?(?:/|$))[\w.-]+(?:/(?!\.\.?(?:/|$))[\w.-]+)*", re.ASCII)
"""A file's path inside a bundle."""
INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


class Unsound(ValueError):
    """What is wrong with a file or a pointer: `code` names the kind, the text says it."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Budget:
    """Bounds the work of one check, whatever it is made of."""

    def __init__(self, most: int) -> None:
        self.most, self.left = most, most

    def spend(self, amount: int) -> None:
        """Work done. Raises `Unsound` when it is more than a bundle may ask for."""
        self.left -= amount
        if self.left < 0:
            raise Unsound("TOO_MUCH_WORK", f"checking this takes more than {self.most:,} steps")

    def weigh(self, value: Any) -> None:
        """Spends what it takes to look at all of a value."""
        todo = [value]
        while todo:
            entry = todo.pop()
            self.spend(1 + (len(entry) // 64 if isinstance(entry, str) else 0))
            if isinstance(entry, list | dict):
                todo += entry.values() if isinstance(entry, dict) else entry


def read_json(data: bytes) -> Any:
    """JSON of which there is only one reading. Raises `Unsound`."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except Unsound:
        raise
    except RecursionError:
        raise Unsound("TOO_DEEP", f"lists and objects nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise Unsound("MALFORMED", f"not JSON: {str(error)[:200]}") from None
    _check(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Unsound("DUPLICATE_KEY", f"the key {twice[:80]!r} stands twice in one object")
    return made


def _no_number(word: str) -> Any:
    raise Unsound("MALFORMED", f"{word} is not JSON")


def _check(value: Any) -> None:
    """Depth, and text that UTF-8 can hold."""
    level, depth = [value], 0
    while level:
        if depth > DEEPEST:
            raise Unsound("TOO_DEEP", f"lists and objects nested more than {DEEPEST} deep")
        below: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                below += entry.values()
                below += entry.keys()
            elif isinstance(entry, list):
                below += entry
            elif isinstance(entry, str) and not entry.isascii():
                try:
                    entry.encode()
                except UnicodeEncodeError:
                    raise Unsound("MALFORMED", "half of a surrogate pair in a string") from None
            elif isinstance(entry, float) and entry in (float("inf"), float("-inf")):
                raise Unsound("MALFORMED", "a number too large for any reader")
        level, depth = below, depth + 1


def canonical(value: Any) -> bytes:
    """The one text of a JSON value: sorted keys, no blanks, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_of(value: Any) -> str:
    """Hex SHA-256 of a value's one text."""
    return hashlib.sha256(canonical(value)).hexdigest()


def text_digest(text: str) -> str:
    """Hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def safe_name(path: Any) -> bool:
    """Whether a path stays inside the bundle and can be written the same everywhere."""
    return isinstance(path, str) and len(path) <= 240 and NAME.fullmatch(path) is not None


def join(file: str, *steps: str | int) -> str:
    """A pointer: `join("a.json", "x/y", 0)` gives `a.json#/x~1y/0`."""
    return file + "#" + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def split(pointer: Any) -> tuple[str, list[str]]:
    """File and steps of a pointer. Raises `Unsound` where it is none."""
    if not isinstance(pointer, str) or len(pointer) > 2_000:
        raise Unsound("DANGLING", f"{str(pointer)[:80]!r} is not a pointer")
    file, sign, place = pointer.partition("#")
    if not sign or (place and not place.startswith("/")):
        raise Unsound("DANGLING", f"{pointer[:200]!r} is not of the form FILE.json#/place")
    if not safe_name(file):
        raise Unsound("CLIMBS", f"{pointer[:200]!r} leads out of the bundle")
    return file, [step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:]]


def resolve(documents: Mapping[str, Any], pointer: Any) -> Any:
    """What stands where a pointer leads. Raises `Unsound` where that is nowhere."""
    file, steps = split(pointer)
    if file not in documents:
        raise Unsound("DANGLING", f"{pointer}: no JSON file {file} in the bundle")
    value = documents[file]
    for number, step in enumerate(steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            raise Unsound("DANGLING", f"{pointer}: nothing at /{'/'.join(steps[: number + 1])}")
    return value


def walk(file: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value of a document with its pointer, containers before what is in them."""
    yield f"{file}#", value
    todo = [(f"{file}#", inside(value))]
    while todo:
        place, entries = todo[-1]
        for key, entry in entries:
            inner = f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}"
            yield inner, entry
            if isinstance(entry, dict | list):
                todo.append((inner, inside(entry)))
                break
        else:
            todo.pop()


def inside(value: Any) -> Iterator[tuple[Any, Any]]:
    """Keys (or numbers) and entries of an object or list; of anything else, none."""
    return iter(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
