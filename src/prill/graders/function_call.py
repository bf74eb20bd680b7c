"""One function call as the answer (BFCL): rules B and T of RULES.md, beside what PostTrainBench published.

An item's `answer` is the right call in Python syntax, its field `functions` holds the functions that were offered, as
published. `format` in its fields says how a call is written where the server did not take calls out of the text:
`python`, `hermes` (the default) or `mistral`. Text is only ever read as literals; nothing is evaluated.
"""

import ast
import json
import math
import re
import warnings
from typing import Any, Literal

from prill.answers import fences, replies
from prill.answers.calls import BadGold, Call, exact_call, mismatch, spelt
from prill.record import Mark, Reply
from prill.sockets import Grader, Item

Format = Literal["python", "hermes", "mistral"]


class Malformed(ValueError):
    """Not a call (B9)."""


# --- literals (B3) ------------------------------------------------------------------------------------------------

_LONGEST = 100_000
_NAMES = {"true": True, "false": False, "null": None}


def _literal(node: ast.expr) -> Any:
    """A number, string, boolean, None, list, tuple (as a list) or dict; anything else is malformed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        return _finite(node.value)
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        return _unique([(_key(key), _literal(value)) for key, value in zip(node.keys, node.values, strict=True)])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value: Any = _literal(node.operand) if isinstance(node.operand, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    raise Malformed("not a literal")


def _key(node: ast.expr | None) -> Any:
    key = None if node is None else _literal(node)
    if isinstance(key, list | dict) or key is None:
        raise Malformed("not a key")
    return key


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("a name is given twice")
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise Malformed("not a finite number")
    return value


def _expression(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise Malformed("too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise Malformed(str(error)) from None


# --- Python calls (B1, B2) ----------------------------------------------------------------------------------------


def _name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise Malformed("the name of a function is dotted words")
    return ".".join([node.id, *reversed(parts)])


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call):
        raise Malformed("not a call")
    name = _name(node.func)
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.Dict):
        arguments = _literal(node.args[0])
        if not all(isinstance(key, str) for key in arguments):
            raise Malformed("the name of an argument is text")
        return Call(name, arguments)
    if node.args:
        raise Malformed("arguments without names")
    return Call(name, _unique([(_keyword(each), _literal(each.value)) for each in node.keywords]))


def _keyword(node: ast.keyword) -> str:
    if node.arg is None:
        raise Malformed("arguments out of a mapping")
    return node.arg


def _python(text: str) -> list[Call]:
    """A call, or a list of calls, in one fence, in code ticks or bare; junk in another script behind it is cut off."""
    blocks = fences.blocks(text)
    if len(blocks) == 1:
        text = blocks[0].text
    elif blocks:
        raise Malformed("more than one block")
    text = text.strip(" \t\n\r`\ufeff\u200b\u00a0")
    if not text:
        raise Malformed("nothing")
    node = _expression(text[: _end(text)])
    return [_call(each) for each in (node.elts if isinstance(node, ast.List) else [node])]


def _end(text: str) -> int:
    """Where the brackets of a text are closed, if only text in another script follows; else its whole length."""
    at = _balanced(text)
    behind = text[at:].lstrip()
    return at if behind and ord(behind[0]) > 127 else len(text)


_BRACKETS = re.compile(r"[\[({]|[\])}]|\"\"\"|'''|[\"']|\\.", re.DOTALL)


def _balanced(text: str, at: int = 0) -> int:
    """The place behind the bracket that closes the first one; strings are passed over. Malformed if none does."""
    depth, quote = 0, ""
    for sign in _BRACKETS.finditer(text, at):
        piece = sign[0]
        if quote:
            quote = "" if piece == quote else quote
        elif piece[0] in "\"'":
            quote = piece
        elif piece in "[({":
            depth += 1
        elif piece in "])}":
            depth -= 1
            if depth <= 0:
                return sign.end()
    raise Malformed("brackets that are not closed")


# --- tagged JSON (B4, B5, B8) -------------------------------------------------------------------------------------


def _no_constant(name: str) -> Any:
    raise Malformed(f"{name} is not JSON")


_JSON = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_constant=_no_constant,
    parse_float=lambda text: _finite(float(text)),
    strict=False,
)


def _value(text: str, at: int) -> tuple[Any, int]:
    """The JSON value (else the Python literal) at a place, and the place behind it."""
    try:
        value, end = _JSON.raw_decode(text, at)
        return value, end
    except Malformed:
        raise
    except (ValueError, RecursionError):
        end = _balanced(text, at)
        return _literal(_expression(text[at:end])), end


def _object_call(value: Any) -> Call:
    name = value.get("name") if isinstance(value, dict) else None
    arguments = value.get("arguments") if isinstance(value, dict) else None
    if isinstance(arguments, str):
        text = arguments.strip()
        arguments, end = _value(text, 0)
        if text[end:].strip():
            raise Malformed("something behind the arguments")
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        raise Malformed("a call has a name and an object of arguments")
    if not all(isinstance(key, str) for key in arguments):
        raise Malformed("the name of an argument is text")
    return Call(name, arguments)


_BLANK = re.compile(r"\s*")


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _hermes(text: str) -> list[Call]:
    """Each `<tool_call>` with one object; its end is the object's, and a closing tag is owed unless the text ends."""
    calls: list[Call] = []
    at = text.find("<tool_call>")
    while at >= 0:
        start = _blank(text, at + len("<tool_call>"))
        if text[start : start + 1] != "{":
            raise Malformed("no object behind the tag")
        value, end = _value(text, start)
        calls.append(_object_call(value))
        end = _blank(text, end)
        if text[end:] and not text.startswith(("</tool_call>", "<tool_call>"), end) and ord(text[end]) < 128:
            raise Malformed("something behind the object")
        at = text.find("<tool_call>", end)
    if not calls:
        raise Malformed("no tag, no call")
    return calls


def _mistral(text: str) -> list[Call]:
    """`[TOOL_CALLS]` and a list of objects, or one object."""
    tag = text.find("[TOOL_CALLS]")
    if tag < 0:
        raise Malformed("no tag, no call")
    start = _blank(text, tag + len("[TOOL_CALLS]"))
    if text[start : start + 1] not in ("[", "{"):
        raise Malformed("no list behind the tag")
    value, _ = _value(text, start)
    return [_object_call(each) for each in (value if isinstance(value, list) else [value])]


_READERS = {"python": _python, "hermes": _hermes, "mistral": _mistral}


def parse_calls(output: str, format: Format) -> list[Call] | None:
    """The calls that an output writes down (B, N1, N2), or `None` where it writes none or one is malformed."""
    reply = replies.body(output)
    try:
        return None if reply is None else _READERS[format](reply)
    except (Malformed, RecursionError):
        return None


# --- the plug-in --------------------------------------------------------------------------------------------------


def _native(reply: Reply) -> list[Call] | None:
    """The calls that the server took out of the reply."""
    try:
        return [_object_call({"name": call.name, "arguments": call.arguments}) for call in reply.calls]
    except (Malformed, RecursionError):
        return None


def mark(reply: Reply, item: Item) -> Mark:
    """Marks a reply that should be one function call."""
    parsed = parse_calls(item.answer, "python")
    if parsed is None or len(parsed) != 1:
        raise ValueError(f"the answer {item.answer!r} is not one call")
    [gold] = parsed
    offered = [each for each in item.fields["functions"] if spelt(each["name"]) == spelt(gold.name)]
    if not offered:
        raise BadGold(f"{gold.name} is not among the functions that were offered")
    native = _native(reply)
    calls = native if reply.calls else parse_calls(reply.text, item.fields.get("format", "hermes"))
    why = mismatch(calls or [], gold, offered[0])
    written = "; ".join(f"{call.name}({json.dumps(dict(call.arguments))})" for call in calls or ())
    return Mark(
        official=float(native is not None and exact_call(native, gold)),
        robust=float(not why),
        answer=written or None,
        why=why,
    )


plugin: Grader = mark
