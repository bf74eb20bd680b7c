"""What the names of a Python program stand for, as far as texts are written out: a part of `python.py`."""

import ast
import base64
import binascii
import re
from collections.abc import Mapping

DEEPEST = 12
"""Sums inside sums that are followed."""
ENVIRON = re.compile(r"(?:os\.)?environ|(?:os\.)?getenv")

TAKES = ("environ.get", "getenv")


class Names:
    """Imports, assignments and defaults, in the order in which a walk over the tree meets them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        """Variables that are set for the program, and by it."""
        self.alias: dict[str, str] = {}
        self.known: dict[str, list[str]] = {}
        self.held: dict[str, set[str]] = {}
        """Name → variables of the environment whose values it has."""
        self.imports: set[str] = set()

    def bind(self, node: ast.AST) -> None:
        """What a name stands for."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.alias[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                self.imports.add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            self.imports.add(node.module or "")
            for alias in node.names:
                self.alias[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
                self.imports.add(f"{node.module or ''}.{alias.name}".strip("."))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self.assigned(target, node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [*node.args.posonlyargs, *node.args.args]
            defaults = node.args.defaults
            for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
                self.learn(name.arg, value)
            for name, each in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
                if each is not None:
                    self.learn(name.arg, each)
        elif isinstance(node, ast.Call) and self.dotted(node.func).endswith("add_argument"):
            default = next((word.value for word in node.keywords if word.arg == "default"), None)
            flags = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if default is not None and flags:
                self.learn(max(flags, key=len).lstrip("-").replace("-", "_"), default)

    def assigned(self, target: ast.expr, value: ast.expr) -> None:
        """One target of an assignment; `os.environ[NAME] = …` sets a variable."""
        if isinstance(target, ast.Subscript) and ENVIRON.fullmatch(self.dotted(target.value)):
            name, text = self.fold(target.slice), self.fold(value)
            if name and text is not None:
                self.env[name] = text
        elif isinstance(target, ast.Name | ast.Attribute):
            self.learn(target.id if isinstance(target, ast.Name) else target.attr, value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self.assigned(one, other)

    def learn(self, name: str, value: ast.expr) -> None:
        """One more text that a name may stand for."""
        text = self.fold(value)
        if text is not None:
            self.known.setdefault(name, []).append(text)
        if taken := self.taken_in(value):
            self.held.setdefault(name, set()).update(taken)

    def taken_in(self, node: ast.AST) -> set[str]:
        """Variables of the environment whose values are in an expression."""
        found: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name | ast.Attribute):
                found |= self.held.get(each.id if isinstance(each, ast.Name) else each.attr, set())
            elif isinstance(each, ast.Subscript) and ENVIRON.fullmatch(self.dotted(each.value)):
                found.add(self.fold(each.slice) or "")
            elif (
                isinstance(each, ast.Call) and each.args and self.dotted(each.func).endswith(("environ.get", "getenv"))
            ):
                found.add(self.fold(each.args[0]) or "")
        return found - {"", *self.env}

    def dotted(self, node: ast.expr) -> str:
        """`openai.OpenAI` of a name or attribute, imports followed; parts that are no names are left out."""
        parts: list[str] = []
        for _ in range(40):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.Call):
                node = node.func
            elif isinstance(node, ast.Subscript):
                node = node.value
            else:
                break
        if isinstance(node, ast.Name):
            parts.append(self.alias.get(node.id, node.id))
        return ".".join(reversed(parts))

    def fold(self, node: ast.expr, depth: int = 0) -> str | None:
        """The text that an expression stands for, with `{}` for parts that are not known; `None`: not known at all."""
        if depth > DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return "".join(_shown(self.fold(each, depth + 1)) for each in node.values[:100])
        if isinstance(node, ast.FormattedValue):
            return self.fold(node.value, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            left, right = self.fold(node.left, depth + 1), self.fold(node.right, depth + 1)
            between = "/" if isinstance(node.op, ast.Div) else ""
            return None if left is None and right is None else f"{_shown(left)}{between}{_shown(right)}"[:10_000]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self.fold(node.left, depth + 1)
        if isinstance(node, ast.Name | ast.Attribute):
            texts = self.known.get(node.id if isinstance(node, ast.Name) else node.attr)
            return texts[0] if texts else None
        if isinstance(node, ast.BoolOp):
            return next((text for each in node.values if (text := self.fold(each, depth + 1)) is not None), None)
        if isinstance(node, ast.IfExp):
            text = self.fold(node.body, depth + 1)
            return self.fold(node.orelse, depth + 1) if text is None else text
        return self.folded_call(node, depth) if isinstance(node, ast.Call) else self.part(node, depth)

    def part(self, node: ast.expr, depth: int) -> str | None:
        """`os.environ[NAME]`."""
        if isinstance(node, ast.Subscript) and ENVIRON.fullmatch(self.dotted(node.value)):
            name = self.fold(node.slice, depth + 1)
            return self.env.get(name or "")
        return None

    def folded_call(self, node: ast.Call, depth: int) -> str | None:
        """Calls that give a text that is written out."""
        name = self.dotted(node.func)
        last = name.rpartition(".")[2]
        first = self.fold(node.args[0], depth + 1) if node.args else None
        if last == "getenv" or (last == "get" and "environ" in name):
            if first in self.env:
                return self.env[first or ""]
            return self.fold(node.args[1], depth + 1) if len(node.args) > 1 else None
        if last in ("b64decode", "urlsafe_b64decode", "fromhex", "unhexlify") and first:
            try:
                raw = bytes.fromhex(first) if "hex" in last else base64.b64decode(first.encode(), validate=False)
                return raw.decode("utf-8", "replace")[:10_000]
            except (ValueError, binascii.Error):
                return None
        if last in ("Path", "str", "PurePath", "encode", "urlparse", "expanduser", "URL") and first is not None:
            return first
        if isinstance(node.func, ast.Attribute):
            if last == "join" and node.args and isinstance(node.args[0], ast.List | ast.Tuple):
                between = self.fold(node.func.value, depth + 1) or ""
                return between.join(_shown(self.fold(each, depth + 1)) for each in node.args[0].elts[:200])
            if last == "join" and name.startswith(("os.path", "posixpath")):
                return "/".join(_shown(self.fold(each, depth + 1)) for each in node.args[:20])
            if last in ("format", "strip", "rstrip", "lstrip", "decode", "lower", "replace", "expanduser", "resolve"):
                return self.fold(node.func.value, depth + 1)
        return None


def _shown(text: str | None) -> str:
    """A part of a text, `{}` where it is not known."""
    return "{}" if text is None else text
