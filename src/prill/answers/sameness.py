"""When two formulas say the same: rules M3 to M7 of RULES.md.

Values are compared exactly where they are rational, else relatively. Formulas with letters are compared at fixed
points: two that agree at each of them are the same expression. What cannot be read is compared as text.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from prill.answers.grammar import Op, Seq, Sym, Tree, Unreadable, read
from prill.answers.latex import plain
from prill.answers.values import Value, Worthless, approx, inverse, is_exact, precision, times, worth

_CLOSE = Decimal("1e-40")
_POINTS = (
    (Fraction(3, 2), Fraction(5, 3), Fraction(7, 5), Fraction(11, 7), Fraction(13, 11), Fraction(17, 13)),
    (Fraction(-7, 3), Fraction(11, 4), Fraction(-5, 6), Fraction(19, 8), Fraction(-23, 9), Fraction(29, 12)),
    (Fraction(31, 10), Fraction(-2, 7), Fraction(37, 9), Fraction(-41, 6), Fraction(1, 8), Fraction(-43, 5)),
)
"""Where formulas with letters are compared: the value of each letter, three times over."""


def _close(left: Value, right: Value) -> bool:
    if is_exact(left) and is_exact(right):
        return left == right
    (a, b), (c, d) = approx(left), approx(right)
    size = max(abs(a), abs(b), abs(c), abs(d))
    if not max(abs(a), abs(b)) or not max(abs(c), abs(d)):
        return size < _CLOSE
    return max(abs(a - c), abs(b - d)) <= _CLOSE * size


def _letters(tree: Tree) -> set[str]:
    match tree:
        case Sym(name):
            return {name} - {"e", "i", "\\pi"}
        case Op(_, args) | Seq(_, args):
            return set().union(*map(_letters, args))
    return set()


def _at_points(*trees: Tree) -> Iterator[list[Value]]:
    """The values of formulas at each point where any of them has one. Raises `Worthless` where not all have."""
    names = sorted(set().union(*map(_letters, trees)))
    if len(names) > len(_POINTS[0]):
        raise Worthless("too many letters")
    for point in _POINTS if names else _POINTS[:1]:
        values: list[Value | None] = []
        for tree in trees:
            try:
                values.append(worth(tree, dict(zip(names, point, strict=False))))
            except ArithmeticError:
                values.append(None)
        if any(value is None for value in values) and any(values):
            raise Worthless("only one of them has a value here")
        if all(values):
            yield [value for value in values if value is not None]


def _same_value(left: Tree, right: Tree) -> bool:
    """Equal at every point where they have a value, and at one at least (M4, M7)."""
    if left == right:
        return True
    try:
        checked = [_close(*values) for values in _at_points(left, right)]
    except Worthless:
        return False
    return bool(checked) and all(checked)


def _same_equation(left: Seq, right: Seq) -> bool:
    """Two equations whose differences of sides are in a constant ratio."""
    sides = [Op("+", (seq.items[0], Op("neg", (seq.items[1],)))) for seq in (left, right)]
    try:
        ratios = [times(a, inverse(b)) for a, b in _at_points(*sides)]
    except Worthless:
        return False
    return len(ratios) > 1 and all(_close(ratio, ratios[0]) for ratio in ratios) and any(ratios[0])


def _is_name(tree: Tree) -> bool:
    """One letter or two (`x`, `xy`, `f(x)`), as they stand in front of an equals sign (M3)."""
    match tree:
        case Op("*", (Sym(), Sym())) | Sym():
            return True
    return False


def _spread(tree: Tree) -> list[Tree]:
    """A formula with `\\pm` as the two that it stands for."""

    def chosen(node: Tree, upper: bool) -> Tree:
        match node:
            case Op("pm" | "mp" as name, (arg,)):
                inner = chosen(arg, upper)
                return inner if (name == "pm") == upper else Op("neg", (inner,))
            case Op(name, args):
                return Op(name, tuple(chosen(arg, upper) for arg in args))
        return node

    above, below = chosen(tree, True), chosen(tree, False)
    return [tree] if above == below else [above, below]


def _without_name(tree: Tree) -> Tree:
    match tree:
        case Seq("=" | "∈", (name, value)) if _is_name(name):
            return value
    return tree


def _several(tree: Tree) -> tuple[bool, list[Tree]] | None:
    """The things in a list, set or plus-minus, and whether their order counts (M5); `None` for any other formula."""
    listed = isinstance(tree, Seq) and tree.kind in ("list", "set")
    items = list(tree.items) if isinstance(tree, Seq) and listed else [tree]
    found = [one for item in items for one in (_spread(item) if isinstance(item, Op) else [item])]
    if not listed and len(found) == 1:
        return None
    return isinstance(tree, Seq) and tree.kind == "list" and len(found) == len(items), found


def _paired(left: list[Tree], right: list[Tree], *, ordered: bool) -> bool:
    if len(left) != len(right):
        return False
    if ordered:
        return all(map(same, left, right))
    rest = list(right)
    for item in left:
        partner = next((at for at, other in enumerate(rest) if same(item, other)), None)
        if partner is None:
            return False
        del rest[partner]
    return True


def same(left: Tree, right: Tree) -> bool:
    """Whether two formulas say the same (M4 to M7). A name in front of one of them is dropped (M3)."""
    match left, right:
        case Seq("=", sides), Seq("=", others):
            return all(map(same, sides, others)) or _same_equation(left, right)
        case Seq("∈"), Seq("∈"):
            pass
        case _:
            left, right = _without_name(left), _without_name(right)
    several, others_too = _several(left), _several(right)
    if several and others_too:
        return _paired(several[1], others_too[1], ordered=several[0] and others_too[0])
    if several or others_too:
        return False
    if isinstance(left, Seq) and isinstance(right, Seq):
        return left.kind == right.kind and _paired(
            list(left.items), list(right.items), ordered=left.kind not in ("union", "≠")
        )
    return not isinstance(left, Seq) and not isinstance(right, Seq) and _same_value(left, right)


_THOUSANDS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")


def _readings(text: str) -> list[Tree]:
    """The ways to read a formula: `1,234` at top level is a number, and also a list of two."""
    found = []
    bracketed = re.search(r"[(\[]|\\\{", text)
    joined = text if bracketed else _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    for form in dict.fromkeys((joined, text)):
        try:
            found.append(read(form))
        except Unreadable:
            continue
    return found


def equivalent(text: str, target: str) -> bool:
    """Whether two formulas as written say the same (M3 to M7); what cannot be read is compared as text (M4)."""
    if (bare := plain(text)) and bare == plain(target):
        return True
    with precision():
        return any(same(left, right) for left in _readings(text) for right in _readings(target))
