"""Lines of a source file, told apart: comments and active ones, and the whole statement that a line belongs to.

By a file's ending: Python by its own tokens and syntax tree, so that a `#` in a string is no comment and an expression
is quoted to its end; everything else by lines, with a comment sign, quotes and trailing backslashes as shells and
submit files have them. A Python file that does not parse is read by lines. Nothing is run.
Not covered: here-documents, whose lines count as code; the arms of a shell's `case`.
"""

import ast
import io
import tokenize
from typing import NamedTuple

SIGNS = {
    "#": ("", "py", "sh", "bash", "sub", "toml", "yaml", "yml", "cfg", "conf", "def", "r", "mk", "env", "txt"),
    "//": ("js", "ts", "c", "h", "cc", "cpp", "rs", "go", "java", "jsonc"),
    ";": ("ini",),
    "%": ("tex",),
}
LONGEST = 20_000
"""Characters of a line that a pattern is put to."""
LARGEST_PARSED = 1_000_000
"""Bytes of a Python file whose syntax tree is made."""
MOST_LINES = 200
"""Lines of one statement."""


class Statement(NamedTuple):
    """Lines from `first` to `last`, counted from 1, and their text."""

    first: int
    last: int
    text: str


def sign_for(path: str) -> str:
    """How a comment begins in a file of that name."""
    ending = path.rpartition("/")[2].rpartition(".")[2].lower() if "." in path.rpartition("/")[2] else ""
    return next((sign for sign, endings in SIGNS.items() if ending in endings), "#")


class SourceText:
    """A file as lines, with what is a comment in it."""

    def __init__(self, path: str, data: bytes, comment: str | None = None) -> None:
        self.lines = data.decode(errors="backslashreplace").replace("\r\n", "\n").split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.sign = comment or sign_for(path)
        self.tree: ast.Module | None = None
        self.comments: dict[int, int] | None = None
        """Line → the column where its comment begins, for Python."""
        if path.endswith(".py") and len(data) <= LARGEST_PARSED:
            self._python(data)

    def _python(self, data: bytes) -> None:
        text = data.decode(errors="backslashreplace")
        try:
            self.tree = ast.parse(text)
            found = tokenize.generate_tokens(io.StringIO(text).readline)
            self.comments = {t.start[0]: t.start[1] for t in found if t.type == tokenize.COMMENT}
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
            self.tree = self.comments = None

    def active_until(self, number: int) -> int:
        """Up to which column line `number` is no comment."""
        line = self.lines[number - 1]
        if self.comments is not None:
            return self.comments.get(number, len(line))
        return comment_start(line, self.sign)

    def statement(self, number: int) -> Statement:
        """The whole statement that a line belongs to."""
        if self.tree is not None and (found := self._python_statement(number)):
            return found
        first = last = number
        if self.active_until(number) and self.lines[number - 1].strip():
            while first > 1 and number - first < MOST_LINES and self._goes_on(first - 1):
                first -= 1
            quote = ""
            for last in range(first, min(len(self.lines), first + MOST_LINES) + 1):
                quote, on = open_at_end(self.lines[last - 1], quote, self.sign)
                if not on and last >= number:
                    break
        return Statement(first, last, "\n".join(self.lines[first - 1 : last]))

    def _goes_on(self, number: int) -> bool:
        line = self.lines[number - 1]
        return line.endswith("\\") and self.active_until(number) == len(line)

    def _python_statement(self, number: int) -> Statement | None:
        """The innermost simple statement (or the head of a compound one) around a line."""
        best: ast.stmt | None = None
        for node in ast.walk(self.tree or ast.Module(body=[], type_ignores=[])):
            around = isinstance(node, ast.stmt) and node.lineno <= number <= (node.end_lineno or node.lineno)
            if isinstance(node, ast.stmt) and around and (best is None or node.lineno >= best.lineno):
                best = node
        if best is None:
            return None
        body = getattr(best, "body", None)
        last = best.end_lineno or best.lineno
        if isinstance(body, list) and body:
            last = max(best.lineno, min(last, body[0].lineno - 1))
            if number > last:
                return None
        last = min(last, best.lineno + MOST_LINES)
        return Statement(best.lineno, last, "\n".join(self.lines[best.lineno - 1 : last]))


def comment_start(line: str, sign: str) -> int:
    """The column where a comment begins in a line of code; its length where there is none. Quotes hide the sign, and a
    sign inside a word (`$#`, `a#b`) begins none."""
    quote = ""
    for column, char in enumerate(line):
        if quote:
            if char == quote and (quote == "'" or line[column - 1] != "\\"):
                quote = ""
        elif char in "\"'" and (column == 0 or line[column - 1] != "\\"):
            quote = char
        elif line.startswith(sign, column) and (column == 0 or line[column - 1] in " \t;()|&"):
            return column
    return len(line)


def open_at_end(line: str, quote: str, sign: str) -> tuple[str, bool]:
    """Which quote is open behind a line, and whether its statement goes on in the next."""
    escaped = False
    for column, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif line.startswith(sign, column) and (column == 0 or line[column - 1] in " \t;()|&"):
            return "", False
    return quote, bool(quote) or escaped
