"""Function calls, and when one is the right one: rules T of RULES.md, beside what PostTrainBench published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A function's name and its arguments by name."""

    name: str
    arguments: Mapping[str, Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class BadGold(ValueError):
    """The right answer breaks the schema that it was published with (T6): the item cannot be marked."""


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema.get("properties") or {}


_INTEGERS, _FLOATS = ("integer", "int", "long"), ("float", "number", "double")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str, "boolean": bool, "array": list, "tuple": list, "list": list, "dict": dict, "object": dict,
}  # fmt: skip


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is of the declared type (T1): an int is a float, a float is no int, a boolean is no number."""
    declared = schema.get("type", "any")
    if isinstance(declared, list):
        return any(_fits(value, {**schema, "type": each}) for each in declared)
    if declared in _INTEGERS:
        return isinstance(value, int) and not isinstance(value, bool)
    if declared in _FLOATS:
        return _is_number(value)
    if not isinstance(value, _KINDS.get(declared, object)):
        return False
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return all(_fits(element, schema["items"]) for element in value)
    if isinstance(value, dict) and _properties(schema):
        return all(_fits(inner, _properties(schema).get(key, {})) for key, inner in value.items())
    return True


def _same(value: Any, gold: Any, schema: Mapping[str, Any]) -> bool:
    """Equality of values that both fit (T1, T4)."""
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if _is_number(value) and _is_number(gold):
        declared = schema.get("type", "any")
        lenient = declared in _FLOATS or isinstance(declared, list)
        return bool(value == gold) and (lenient or isinstance(gold, float) or isinstance(value, int))
    if isinstance(value, list) and isinstance(gold, list):
        inner = schema.get("items") if isinstance(schema.get("items"), Mapping) else {}
        return len(value) == len(gold) and all(_same(a, b, inner or {}) for a, b in zip(value, gold, strict=True))
    if isinstance(value, dict) and isinstance(gold, dict):
        value, gold = _filled(value, schema), _filled(gold, schema)
        return value.keys() == gold.keys() and all(
            _same(value[key], gold[key], _properties(schema).get(key, {})) for key in gold
        )
    return type(value) is type(gold) and bool(value == gold)


def _filled(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the declared defaults of those that are not given (T2)."""
    declared = {key: _plain(each["default"]) for key, each in _properties(schema).items() if "default" in each}
    return {**declared, **arguments}


def _plain(value: Any) -> Any:
    """A value with lists for tuples (T4)."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, Mapping) else value


def _complaint(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """What is wrong with arguments by themselves (T1, T2); nothing if they keep to the schema."""
    known = _properties(schema)
    for key, value in arguments.items():
        if key not in known:
            return f"unknown argument {key}"
        if not _fits(value, known[key]) and not ("default" in known[key] and value == _plain(known[key]["default"])):
            return f"{key} is not of type {known[key].get('type')}"
    missing = [key for key in schema.get("required") or () if key not in arguments]
    return f"missing argument {missing[0]}" if missing else ""


def spelt(name: str) -> str:
    """A function's name as servers spell it (T3)."""
    return name.replace(".", "_")


def mismatch(calls: Sequence[Call], gold: Call, schema: Mapping[str, Any]) -> str:
    """Why calls are not the one right call (T1 to T5), or nothing if they are. Raises `BadGold` (T6)."""
    parameters = schema.get("parameters") or {}
    right = _plain(gold.arguments)
    complaint = _complaint(right, parameters)
    if complaint or spelt(gold.name) != spelt(schema.get("name", gold.name)):
        raise BadGold(complaint or f"{gold.name} is not the function that was offered")
    if len(calls) != 1:
        return f"{len(calls)} calls instead of one"
    [call] = calls
    if spelt(call.name) != spelt(gold.name):
        return f"calls {call.name}"
    given = _plain(call.arguments)
    return _complaint(given, parameters) or ("" if _same(given, right, parameters) else "other values")


# --- the published reading ----------------------------------------------------------------------------------------


def exact_call(calls: Sequence[Call], gold: Call) -> bool:
    """PostTrainBench v1: exactly one call, and its name and arguments equal the right ones as Python compares them.

    Known to be wrong: 1 is True and 5.0 is 5 to it; a declared default that is written out fails, or passes where the
    right call happens to write it; `math_sqrt` is not `math.sqrt`, although names are offered with underscores.
    """
    return [(call.name, _plain(call.arguments)) for call in calls] == [(gold.name, _plain(gold.arguments))]
