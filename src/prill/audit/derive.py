"""The closed language in which a number of a bundle is derived from others, and the check that it rests on something.

    length      of a list, object or text
    count       entries of a list or object whose fields are as `where` says
    distinct    different values of the fields `by`
    sum         of all numbers in the operands
    difference  first minus second
    product     of all operands
    percentage  first per hundred of second
    bytes       of a text in UTF-8
    sha256      of a text in UTF-8
    same        the value that stands elsewhere
    parsed      the JSON that stands in a text
    piece       of a text, from the character `start`, as many as `length` (both in `where`)
    verdict     of expectations: do they hold?
    status      of a claim, from its parts' verdicts

A value is *grounded* if it was observed, with an input as its source, or derived from grounded values. Chains longer
than `LONGEST`, circles and more work than `MOST_WORK` are refused by name.
Not covered: whether what was observed is true of the input; `prill audit rerun` reads the inputs again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import field

from prill.audit.pointers import Budget, Unsound, canonical, read_json, resolve, text_digest
from prill.record import Record

How = Literal[
    "same",
    "parsed",
    "piece",
    "length",
    "count",
    "distinct",
    "sum",
    "difference",
    "product",
    "percentage",
    "bytes",
    "sha256",
    "verdict",
    "status",
]
LONGEST = 32
"""Derivations on the way from a value to what was observed."""
MOST_WORK = 20_000_000
"""Values looked at in one check."""

INPUTS = "provenance.json#/inputs/"
"""Where every source of an observation stands."""
LARGEST = 10**18
"""Operands beyond this are refused, so that no product can grow without bound."""


class Derivation(Record, frozen=True, kw_only=True):
    """How one value follows from others."""

    value: str
    """Pointer to the value."""
    how: How
    of: tuple[str, ...]
    """Pointers to the operands."""
    where: dict[str, Any] = field(default_factory=dict)
    by: tuple[str, ...] = ()


class Observation(Record, frozen=True, kw_only=True):
    """Everything at and below a place was read from an input."""

    under: str
    source: str
    """Pointer to the input in the provenance."""


class Derivations(Record, frozen=True, kw_only=True, tag="prill/derivations/1", tag_field="schema"):
    """Where the values of a bundle come from."""

    derived: tuple[Derivation, ...]
    observed: tuple[Observation, ...]


class Calculator:
    """Evaluates derivations over documents, with a bound on all of its work together."""

    def __init__(
        self,
        documents: Mapping[str, Any],
        derivations: Derivations,
        given: Iterable[str] = (),
        budget: Budget | None = None,
    ) -> None:
        """`given`: files whose values the bundle itself states, such as its provenance."""
        self.documents, self.budget = documents, budget or Budget(MOST_WORK)
        self.spend = self.budget.spend
        self.derived: dict[str, Derivation] = {entry.value: entry for entry in derivations.derived}
        self.observed = {entry.under: entry.source for entry in derivations.observed}
        self.given = tuple(f"{file}#" for file in given)
        self.settled: dict[str, str] = {}

    def evaluate(self, entry: Derivation) -> Any:
        """What a derivation gives. Raises `Unsound` where it gives nothing."""
        operands = [resolve(self.documents, pointer) for pointer in entry.of]
        self.spend(1 + len(operands))
        if entry.how in ("same", "parsed", "piece"):
            self.budget.weigh(operands[:1])
        try:
            return self._apply(entry, operands)
        except (TypeError, ValueError, ZeroDivisionError, IndexError, OverflowError) as error:
            if isinstance(error, Unsound):
                raise
            raise Unsound("UNDERIVABLE", f"{entry.value}: {entry.how} of {entry.of[:3]} gives nothing") from None

    def _apply(self, entry: Derivation, operands: list[Any]) -> Any:
        first = operands[0]
        match entry.how:
            case "same":
                return first
            case "parsed" if isinstance(first, str):
                return read_json(first.encode())
            case "piece" if isinstance(first, str):
                start, length = (_number(_field(entry.where, name)) for name in ("start", "length"))
                return first[int(start) : int(start) + int(length)] if start >= 0 <= length else None
            case "length" if isinstance(first, list | dict | str):
                return len(first)
            case "count" | "distinct" if isinstance(first, list | dict):
                first = list(first.values()) if isinstance(first, dict) else first
                self.spend(len(first) * (1 + len(entry.where) + len(entry.by)))
                kept = [one for one in first if all(_field(one, name) == v for name, v in entry.where.items())]
                if entry.how == "count":
                    return len(kept)
                return len({canonical([_field(one, name) for name in entry.by]) for one in kept})
            case "sum":
                return sum(self._numbers(operands))
            case "difference":
                minuend, subtrahend = (_number(value) for value in operands)
                return minuend - subtrahend
            case "product" if len(operands) <= LONGEST:
                made: float = 1
                for value in operands:
                    made *= _number(value)
                return made
            case "percentage":
                share, whole = (_number(value) for value in operands)
                return 100 * share / whole
            case "bytes" if isinstance(first, str):
                self.spend(len(first) // 64)
                return len(first.encode())
            case "sha256" if isinstance(first, str):
                self.spend(len(first) // 64)
                return text_digest(first)
            case "verdict" if isinstance(first, list):
                self.spend(len(first))
                return self.verdict(first)
            case "status" if isinstance(first, list):
                self.spend(len(first))
                return status([_field(part, "verdict") for part in first])
        raise Unsound("UNDERIVABLE", f"{entry.value}: {entry.how} cannot be taken of {entry.of[:3]}")

    def verdict(self, expects: Iterable[Any]) -> str:
        """Whether expectations hold: `supported` if all do, else `refuted`; none at all is `untested`."""
        held = []
        for one in expects:
            found = resolve(self.documents, _field(one, "at"))
            self.budget.weigh(found)
            held.append(same(found, _field(one, "equals")))
        return "untested" if not held else "supported" if all(held) else "refuted"

    def _numbers(self, operands: list[Any]) -> list[float]:
        found: list[float] = []
        todo = list(operands)
        while todo:
            value = todo.pop()
            self.spend(1)
            if isinstance(value, list | dict):
                todo += value.values() if isinstance(value, dict) else value
            else:
                found.append(_number(value))
        return found

    # --- what a value rests on ---

    def ground(self, pointer: str) -> str:
        """Why a value may be believed: `observed`, `derived` or `stated`. Raises `Unsound` where nothing carries it."""
        return self._ground(pointer, ())

    def _ground(self, pointer: str, above: tuple[str, ...]) -> str:
        if pointer in self.settled:
            return self.settled[pointer]
        if pointer in above:
            raise Unsound("UNDERIVABLE", f"{pointer}: derived from itself")
        if len(above) >= LONGEST:
            raise Unsound("TOO_DEEP", f"{above[0]}: more than {LONGEST} derivations in a row")
        self.spend(1)
        if entry := self.derived.get(pointer):
            for operand in entry.of:
                self._ground(operand, (*above, pointer))
            how = "derived"
        elif pointer.startswith(self.given):
            how = "stated"
        elif source := self.source(pointer):
            given = resolve(self.documents, source)
            if not source.startswith(INPUTS) or not isinstance(given, dict) or "sha256" not in given:
                raise Unsound("UNDERIVABLE", f"{pointer}: its source {source[:200]} is no input with a digest")
            how = "observed"
        else:
            how = self._inside(pointer, above)
        self.settled[pointer] = how
        return how

    def source(self, pointer: str) -> str | None:
        """The input that a place was read from."""
        while True:
            if pointer in self.observed:
                return self.observed[pointer]
            shorter, slash, _ = pointer.rpartition("/")
            if not slash or "#" not in shorter:
                return None
            pointer = shorter

    def _inside(self, pointer: str, above: tuple[str, ...]) -> str:
        """A list or object rests on all that is in it."""
        value = resolve(self.documents, pointer)
        if not isinstance(value, list | dict) or not value:
            raise Unsound("UNDERIVABLE", f"{pointer}: neither observed nor derived")
        for key in value if isinstance(value, dict) else range(len(value)):
            self._ground(f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", (*above, pointer))
        return "derived"


def status(verdicts: list[Any]) -> str:
    """A claim's status: all parts supported · some · none, of which some refuted · nothing tested."""
    if any(verdict not in ("supported", "refuted", "untested") for verdict in verdicts):
        raise ValueError("a verdict is supported, refuted or untested")
    if "supported" in verdicts:
        return "supported" if set(verdicts) == {"supported"} else "partial support"
    return "refuted" if "refuted" in verdicts else "untested"


def same(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are the same; true is not one."""
    return canonical(found) == canonical(wanted)


def _field(entry: Any, name: str) -> Any:
    if not isinstance(entry, dict) or name not in entry:
        raise TypeError(name)
    return entry[name]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        raise TypeError("not a number, or too large a one")
    return value
