"""Two records → whether their results may stand side by side, the fields that differ, and the rule that decided.

Pure. The rules are data (`definitions/comparisons/`): a field in which two results differ makes them near or not
comparable, as its rule says; a deciding field that one of them does not report counts as a reason too, by its own
verdict, since what is not known cannot be seen to agree. The gravest verdict is the answer.
Not covered: whether two different wordings mean the same, beyond the groups of words that the rules list.
"""

from typing import Any

from prill.reported import NAMES, Comparability, Comparable, Comparison, Difference, ResultRecord, Rule, told

GRAVITY: tuple[Comparable, ...] = ("same", "near", "not comparable")


def compare(a: ResultRecord, b: ResultRecord, by: Comparison, digest: str = "") -> Comparability:
    """The verdict on two records under some rules. `digest`: hex SHA-256 of the rules' file."""
    one_result = a.id == b.id and a.fields == b.fields
    checks = [] if one_result else [(rule, name) for rule in by.rules for name in rule.fields]
    found = [one for rule, name in checks if (one := difference(a, b, by, rule, name))]
    found += [one for side, record in (("a", a), ("b", b)) if (one := withdrawn(side, record))]
    worst: Comparable = max((one.verdict for one in found), key=GRAVITY.index, default="same")
    first = next((one for one in found if one.verdict == worst), None)
    deciding = {name for rule in by.rules for name in rule.fields}
    return Comparability(
        verdict=worst,
        rule=first.rule if first else None,
        why="it is one result" if one_result and not found else sentence(by, worst, found),
        rules=by.name,
        rules_sha256=digest,
        differences=tuple(found),
        besides=tuple(name for name in NAMES if name not in deciding and not agree(by, name, a, b)),
    )


def difference(a: ResultRecord, b: ResultRecord, by: Comparison, rule: Rule, name: str) -> Difference | None:
    """What a deciding field says against comparing; none where both report the same."""
    left, right = told(a, name), told(b, name)
    if left is not None and right is not None and agree(by, name, a, b):
        return None
    unknown = left is None or right is None
    return Difference(
        field=name,
        rule=rule.id,
        a=left.value if left else None,
        b=right.value if right else None,
        why="not reported" if unknown else "differs",
        verdict=rule.unknown if unknown else rule.otherwise,
    )


def withdrawn(side: str, record: ResultRecord) -> Difference | None:
    """A retracted record is compared with nothing."""
    if record.retracted is None:
        return None
    why = record.retracted.why
    return Difference(
        field="retracted",
        rule="not-retracted",
        a=why if side == "a" else None,
        b=why if side == "b" else None,
        why="differs",
        verdict="not comparable",
    )


def agree(by: Comparison, name: str, a: ResultRecord, b: ResultRecord) -> bool:
    """Whether two records report the same in a field; two that both report nothing agree in that."""
    left, right = told(a, name), told(b, name)
    if left is None or right is None:
        return left is right
    groups = [{plain(word) for word in group} for group in by.alike.get(name, ())]
    one, other = plain(left.value), plain(right.value)
    return bool(one == other) or any(one in group and other in group for group in groups)


def plain(value: Any) -> Any:
    """A value as it is compared: words without case and extra blanks, lists without order, numbers as numbers."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if isinstance(value, tuple | list):
        return tuple(sorted(plain(entry) for entry in value))
    return value


def sentence(by: Comparison, verdict: Comparable, found: list[Difference]) -> str:
    """The verdict in words."""
    if verdict == "same":
        return "every deciding field is reported in both and agrees"
    deciding = [one for one in found if one.verdict == verdict]
    rules = {rule.id: rule.why for rule in by.rules} | {"not-retracted": "a retracted record is compared with nothing"}
    named = ", ".join(f"{one.field} ({one.why})" for one in deciding)
    return f"{rules[deciding[0].rule]}: {named}"
