"""Python code as the answer (HumanEval, LiveCodeBench): which code a reply holds, rules C of RULES.md, and its marks.

`extract_code` only reads: code is parsed and compiled, never run. `coderun/` runs it, and says what is not covered.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from textwrap import dedent, indent
from typing import Any, Literal

from prill import plugins
from prill.answers import fences, replies
from prill.coderun import sample
from prill.coderun.peers import need_boxes
from prill.record import Mark, Reply
from prill.sockets import Grader, Item

Mode = Literal["function", "program"]


@dataclass(frozen=True)
class Extracted:
    """The code of a reply, or `None` and why not: `truncated`, `no_reply`, `no_code`, `syntax_error` (the model's), or
    `entry_point_missing`."""

    code: str | None
    reason: str = ""


def need_tests(tests: Sequence[Any]) -> None:
    """Raises where an item has no tests: it could only be passed, so it cannot be marked (C12)."""
    if not tests:
        raise ValueError("an item without tests cannot be marked")


# --- what parses --------------------------------------------------------------------------------------------------

_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_MOST_READING = 500_000
"""Characters that one search for the longest beginning may parse, over and over."""
_MOST_STARTS = 12
_INVISIBLE = {ord(char): " " for char in "\u00a0\u2007\u202f\u3000"} | dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u2060")
)


def _error_line(code: str) -> int | None:
    """The line at which code stops being Python, or `None` where all of it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<reply>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error.lineno or 1
    except _FAULTS:
        return 1
    return None


def _parses(code: str) -> bool:
    return _error_line(code) is None


def _module(code: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def _longest(lines: list[str]) -> str:
    """The longest beginning of some lines that parses. Gives up where that takes too much reading."""
    end, read = len(lines), 0
    while end > 0 and read < _MOST_READING:
        code = "\n".join(lines[:end])
        error = _error_line(code)
        if error is None:
            return code
        end, read = min(end - 1, max(error - 1, 0)), read + len(code) + 1000
    return ""


def _repaired(text: str) -> str:
    """Code that parses only without its no-break spaces and zero-width characters comes without them (C9)."""
    visible = text.translate(_INVISIBLE)
    return visible if visible != text and not _parses(text) and _parses(visible) else text


# --- where the code stands ----------------------------------------------------------------------------------------

_START = re.compile(r"(?:def|class|import|from|async[ ]def)\s|@\w")


def _fenced(blocks: Iterable[fences.Block], *, tagged: bool | None = None) -> Iterator[str]:
    """The text of each Python or untagged block that parses (C3); an open one as far as it parses (C5)."""
    for block in blocks:
        if not (fences.is_python(block.tag) or block.tag == "") or tagged not in (None, bool(block.tag)):
            continue
        text = _repaired(block.text)
        text = text if block.closed else _longest(text.split("\n"))
        if text.strip() and _parses(text):
            yield text


def _unfenced(text: str) -> Iterator[str]:
    """Code outside fences: from each line that starts like code, as much as parses (C7)."""
    lines = dedent(text).split("\n")
    at = 0
    for _ in range(_MOST_STARTS):
        start = next((number for number in range(at, len(lines)) if _START.match(lines[number])), None)
        if start is None:
            return
        code = _longest(lines[start:])
        if code.strip():
            yield code
        at = start + max(1, len(code.split("\n")) if code else 1)


def _above_lone_fence(text: str) -> str:
    """What stands above the first fence, where that is bare: it may be a closing one (C4)."""
    lines = fences.lines_of(text)
    first = next((at for at, line in enumerate(lines) if fences.is_fence(line)), None)
    return "\n".join(lines[:first]) if first and not lines[first].strip(" \t`~") else ""


def _places(text: str) -> Iterator[list[str]]:
    """The pieces of code in a reply, by each way to find them, most trustworthy first."""
    yield list(_fenced(fences.blocks(text)))
    yield list(_fenced(fences.blocks(text, glued=True)))
    yield list(_unfenced(_above_lone_fence(text)))
    yield list(_unfenced(fences.outside(text)))


# --- functions ----------------------------------------------------------------------------------------------------


def _defines(tree: ast.Module, name: str) -> bool:
    """Whether a module has a top-level definition, assignment or import of a name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Import | ast.ImportFrom) and name in [
            alias.asname or alias.name for alias in node.names
        ]:
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            return True
    return False


def _targets(node: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that run when the module is imported."""
    waiting = [node]
    while waiting:
        yield (now := waiting.pop())
        waiting += [
            child
            for child in ast.iter_child_nodes(now)
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        ]


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_COMPOUND = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


def _called(node: ast.AST) -> str:
    target = node.func if isinstance(node, ast.Call) else None
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""


def _stays(node: ast.stmt, entry_point: str, gone: set[str]) -> bool:
    """Whether a top-level statement is part of a solution (C8): imports, definitions, assignments, and what builds a
    table; not calls, prints, assertions, main guards, or anything that waits for input or calls the solution."""
    if isinstance(node, _DEFINITIONS):
        return True
    if isinstance(node, ast.Expr):
        return _called(node.value) == "setrecursionlimit"
    parts = list(_at_import(node))
    names = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    calls = {_called(part) for part in parts}
    attributes = {part.attr for part in parts if isinstance(part, ast.Attribute)}
    if {"input", entry_point} & calls or "stdin" in attributes | names or gone & names or "__name__" in names:
        return False
    if isinstance(node, ast.Assign | ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value):
        return True
    if not isinstance(node, _COMPOUND):
        return False
    if any(isinstance(child, _DEFINITIONS) for child in ast.walk(node)):
        return True
    builds = any(isinstance(part, ast.Assign | ast.AugAssign) for part in parts) or bool(attributes & calls)
    return builds and "print" not in calls and not any(isinstance(part, ast.Assert) for part in parts)


def _statements(code: str, entry_point: str) -> list[tuple[ast.stmt, str]]:
    """The statements of a module that stay, each with its source."""
    lines = code.split("\n")
    kept: list[tuple[ast.stmt, str]] = []
    gone: set[str] = set()
    body = _module(code).body
    spans = [(min([node.lineno, *_decorators(node)]), node.end_lineno or node.lineno) for node in body]
    for at, (node, (first, last)) in enumerate(zip(body, spans, strict=True)):
        if not _stays(node, entry_point, gone):
            gone |= _targets(node)
            continue
        gone -= _targets(node)
        shared = any(start <= last and first <= end for start, end in (spans[:at] + spans[at + 1 :]))
        kept.append((node, ast.unparse(node) if shared else "\n".join(lines[first - 1 : last])))
    return kept


def _decorators(node: ast.stmt) -> list[int]:
    return [each.lineno for each in getattr(node, "decorator_list", [])]


def _solution(pieces: Iterable[str], prompt: str, entry_point: str) -> str:
    """One module out of pieces of code: first what the prompt offers (C6), then each piece in order (C3, C10)."""
    own = [statement for piece in pieces for statement in _statements(piece, entry_point)]
    written = {ast.dump(node) for node, _ in own}
    offered = [
        (node, source)
        for node, source in _statements(_whole_prompt(prompt), entry_point)
        if getattr(node, "name", None) != entry_point and ast.dump(node) not in written
    ]
    both = [*offered, *own]
    future = [source for node, source in both if _is_future(node)]
    return (
        "\n\n".join(dict.fromkeys(future))
        + "\n\n" * bool(future)
        + "\n\n".join(source for node, source in both if not _is_future(node))
    )


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _whole_prompt(prompt: str) -> str:
    """The prompt as a module: its last function may still lack a body; words instead of code offer nothing."""
    for ending in ("", "\n    pass"):
        if _parses(prompt.rstrip() + ending):
            return prompt.rstrip() + ending
    return ""


def _continued(prompt: str, text: str, entry_point: str) -> str | None:
    """The prompt with a reply that is only its function's body (C6), as written or with its margin put right."""
    text = text.strip("\n")
    first, _, rest = text.partition("\n")
    head = prompt.rstrip().split("\n")
    margin = head[-1][: len(head[-1]) - len(head[-1].lstrip())] or "    "
    bodies = (text, f"{margin}{first.lstrip()}\n{rest}", indent(dedent(text), margin))
    programs = [[*head, *body.split("\n")] for body in dict.fromkeys(bodies)]
    for lines in sorted(programs, key=lambda lines: not _parses("\n".join(lines))):
        code = _longest(lines)
        if code and _has_body(_module(code), entry_point, len(head)):
            return _solution([code], "", entry_point)
    return None


def _has_body(tree: ast.Module, name: str, behind: int) -> bool:
    """Whether a function does something behind a line, other than writing down a value as prose may seem to do."""
    return any(
        step.lineno > behind and (not isinstance(step, ast.Expr) or isinstance(step.value, ast.Call | ast.Yield))
        for node in tree.body
        if getattr(node, "name", "") == name
        for step in getattr(node, "body", [])
    )


def _function(text: str, entry_point: str, prompt: str) -> Extracted:
    anything = False
    for pieces in _places(text):
        code = _solution(pieces, prompt, entry_point) if pieces else ""
        if code.strip() and _parses(code) and (not entry_point or _defines(_module("\n".join(pieces)), entry_point)):
            return Extracted(code)
        anything = anything or bool(pieces)
    blocks = [block for block in fences.blocks(text) if block.tag == "" or fences.is_python(block.tag)]
    if prompt and entry_point:
        for body in [*(block.text for block in blocks), text]:
            code = _continued(prompt, body, entry_point) or ""
            if code:
                return Extracted(code)
    return _nothing(text, anything)


def _nothing(text: str, anything: bool) -> Extracted:
    if any(fences.is_python(block.tag) and block.text and not _parses(block.text) for block in fences.blocks(text)):
        return Extracted(None, "syntax_error")
    if anything:
        return Extracted(None, "entry_point_missing")
    starts = any(_START.match(line) and line.rstrip().endswith(":") for line in fences.lines_of(text))
    return Extracted(None, "syntax_error" if starts else "no_code")


# --- programs -----------------------------------------------------------------------------------------------------


def _does_something(code: str) -> bool:
    """Whether code is more than values written down, as sample output is."""
    passive = (ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp)
    return any(
        not (isinstance(node, ast.Expr) and isinstance(node.value, passive))
        and not (isinstance(node, ast.AnnAssign) and node.value is None)
        for node in _module(code).body
    )


def _program(text: str) -> Extracted:
    """The last tagged block that parses, whole (C3); without one, the last untagged; without one, what parses (C7)."""
    for glued in (False, True):
        blocks = fences.blocks(text, glued=glued)
        for tagged in (True, False):
            found = [code for code in _fenced(blocks, tagged=tagged) if _does_something(code)]
            if found:
                return Extracted(found[-1])
    for whole in (_above_lone_fence(text), fences.outside(text)):
        if whole.strip() and _parses(whole) and _does_something(whole):
            return Extracted(whole.strip("\n"))
        found = [code for code in _unfenced(whole) if _does_something(code)]
        if found:
            return Extracted(found[0])
    return _nothing(text, False)


# --- the face -----------------------------------------------------------------------------------------------------


def extract_code(
    completion: str,
    *,
    entry_point: str = "",
    mode: Mode = "function",
    prompt: str = "",
    truncated: bool = False,
) -> Extracted:
    """The code that a completion answers with (C, N1, N2); `truncated` where N6 voids it.

    `function`: what defines the entry point, with the helpers it needs and nothing that runs by itself; the prompt's
    own code stays available. `program`: one program, whole. Total: a reply without usable code is a value.
    """
    if truncated:
        return Extracted(None, "truncated")
    reply = replies.body(completion)
    if reply is None:
        return Extracted(None, "no_reply")
    text = "\n".join(fences.lines_of(reply))
    try:
        if mode == "program":
            return _program(text)
        return _function(text, entry_point.split(".")[0], "\n".join(fences.lines_of(prompt)))
    except RecursionError:  # expressions nested hundreds deep, which Python itself may still compile
        return Extracted(None, "syntax_error")


# --- the plug-in --------------------------------------------------------------------------------------------------


class PythonTests:
    """Runs what a reply holds against the item's tests, in boxes that this opens: so it is called outside of any."""

    outside = True

    def __init__(self, sandbox: str) -> None:
        """A sandbox by name; one that does not isolate is refused when the first code is run."""
        self.sandbox = sandbox

    def works(self) -> None:
        """Raises `InfraError` where code cannot be run here; asked before hours are spent on replies."""
        need_boxes(plugins.get("sandboxes", self.sandbox), self.sandbox)

    def settings(self, item: Item) -> dict[str, Any]:
        """What code for a benchmark of such items is run in, and with which limits."""
        return {"sandbox": self.sandbox, **asdict(sample.limits_of(item))}

    def __call__(self, reply: Reply, item: Item) -> Mark:
        """Official: the code that the published scorer would run; see `sample.judge_published`. Robust: the code that
        RULES.md finds. All of it runs in boxes; `InfraError` where one fails."""
        truncated = replies.cut_off(reply.stop, item.fields.get("truncated_scores_zero", False))
        mode: Mode = "program" if sample.is_program(item) else "function"
        wanted = item.fields.get("entry_point") or ""
        if "class Solution" in (starter := item.fields.get("starter_code") or ""):
            wanted = "Solution"
        prompt = item.question if "test" in item.fields else starter
        robust = extract_code(reply.text, entry_point=wanted, mode=mode, prompt=prompt, truncated=truncated)
        official = None if truncated else sample.published_code(item, reply.text)
        sandbox = plugins.get("sandboxes", self.sandbox)
        ours = sample.judge(sandbox, item, robust.code)
        theirs = sample.judge_published(sandbox, item, official, (robust.code, ours))
        why = robust.reason or ": ".join(filter(None, (ours.reason, ours.detail)))
        return Mark(official=float(theirs.passed), robust=float(ours.passed), answer=robust.code, why=why)


plugin: Grader = PythonTests("bubblewrap")
