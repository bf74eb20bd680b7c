"""A shell's command line → the programs that it runs, each with its words, variables, redirections and here-document.

Read in one pass over the characters, whatever they are. Not covered: arithmetic, arrays, and functions that are called
with arguments (their bodies are read once, where they stand).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prill.conduct.clients import listed

LONGEST = 200_000
"""Characters of one command that are read."""
MOST = 5_000
"""Programs of one command."""
DEEPEST = 8
"""Shells inside shells."""
OPERATORS = (";;", "&&", "||", "|&", ";", "|", "&", "\n", "(", ")")
KEYWORDS = listed("if then elif else while until do done fi { } ! time case esac in select coproc")
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=])([^{}]*))?[^{}]*\}|([A-Za-z_][A-Za-z0-9_]*))")
REDIRECT = re.compile(r"(?:[0-9]*|&)(<<<|<<-?|>>|>\||<>|>&|<&|>|<)")
LITERAL = "\ue000"
"""Stands for a dollar that is no variable's."""


@dataclass(frozen=True)
class Program:
    """One program of a command line."""

    words: tuple[str, ...]
    """Its name and arguments, known variables filled in; empty for a line that only sets variables."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set for it, by the line or before it."""
    names: frozenset[str] = frozenset()
    """Variables that it is given the values of."""
    writes: tuple[str, ...] = ()
    """Files that its output goes to."""
    reads: tuple[str, ...] = ()
    stdin: str | None = None
    """What the line itself puts into its input."""
    comment: str = ""
    """What stands behind it, for a reader."""
    piped: bool = False
    """Its input is the output of the program before it."""
    folder: str = ""
    """Where it runs, as far as `cd` says."""


def programs(text: str, env: Mapping[str, str] | None = None, folder: str = "", depth: int = 0) -> list[Program]:
    """The programs of a command line in order, those inside `$(…)`, `sh -c` and `eval` too. Total."""
    found: list[Program] = []
    known = dict(env or {})
    here = folder
    for line in _lines(text[:LONGEST]):
        if len(found) >= MOST:
            break
        for inner in line.inner:
            found += programs(inner, known, here, depth + 1) if inner and depth < DEEPEST else []
        program = _program(line, known, here)
        if not program.words:
            known.update(program.env)
        elif program.words[0] in ("export", "declare", "typeset", "readonly", "local"):
            known.update(_pairs(program.words[1:]))
            found.append(program)
        elif program.words[0] in ("cd", "pushd"):
            here = _moved(here, program.words[1:])
        elif (inside := _inside(program)) is not None and depth < DEEPEST:
            found.append(program)
            found += programs(inside, program.env, here, depth + 1)
        else:
            found.append(program)
    return found[:MOST]


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    return {match[1]: match[2] for word in words if (match := ASSIGNED.fullmatch(word))}


def _moved(here: str, words: tuple[str, ...]) -> str:
    to = next((word for word in words if not word.startswith("-")), "~")
    return to if to.startswith(("/", "~", "$")) or not here else f"{here}/{to}"


def _inside(program: Program) -> str | None:
    """The command line that a shell is given as a word, or in its input."""
    name, rest = program.words[0].rpartition("/")[2], list(program.words[1:])
    if name == "eval":
        return " ".join(rest)
    if name in STARTERS:
        return STARTERS[name](rest)
    if name not in ("sh", "bash", "zsh", "dash", "ksh"):
        return None
    for at, word in enumerate(rest):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return rest[at + 1] if at + 1 < len(rest) else None
        if not word.startswith(("-", "+")):
            return None
    return program.stdin


def _joined(words: Sequence[str]) -> str | None:
    """Words as a line that is read back as them; `None` for none."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words) or None


def _executed(rest: list[str]) -> str | None:
    """What `find` runs of what it finds."""
    at = next((n for n, word in enumerate(rest) if word in ("-exec", "-execdir", "-ok")), len(rest))
    stop = next((n for n in range(at, len(rest)) if rest[n] in (";", "+")), len(rest))
    name = next((after for word, after in pairwise(rest) if word in ("-name", "-path")), "{}")
    return _joined([name if word == "{}" else word for word in rest[at + 1 : stop]])


def _beside(rest: list[str]) -> str | None:
    """What `parallel` runs; its lists of arguments stay out."""
    stop = next((n for n, word in enumerate(rest) if word.startswith(":::")), len(rest))
    start = next((n for n, word in enumerate(rest) if not word.startswith("-") and not word.isdigit()), stop)
    inside = rest[start:stop]
    return inside[0] if len(inside) == 1 else _joined(inside)


def _typed(rest: list[str]) -> str | None:
    """What a terminal that goes on without anybody is given: lines of one word, else the words behind its options."""
    lines = [word for word in rest if " " in word.strip()]
    start = next((n for n, word in enumerate(rest) if word.rpartition("/")[2] in TYPED), len(rest))
    return "\n".join(lines).replace("\\n", "\n") or _joined(rest[start:])


def _given(rest: list[str]) -> str | None:
    """The line behind `-c`."""
    return next((after for word, after in pairwise(rest) if word.startswith("-") and word.endswith("c")), None)


TYPED = listed("python python3 bash sh node torchrun accelerate uv curl wget make perl ruby")
STARTERS = {"find": _executed, "parallel": _beside, "tmux": _typed, "screen": _typed, "script": _given, "su": _given}
"""Programs that are given a command line to run."""


# --- words --------------------------------------------------------------------------------------------------------


@dataclass
class _Line:
    """Words between two operators, as they stand."""

    words: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    stdin: str | None = None
    comment: str = ""
    piped: bool = False


def _program(line: _Line, known: Mapping[str, str], folder: str) -> Program:
    words = list(line.words)
    env: dict[str, str] = {}
    while words:
        if words[0] in KEYWORDS:
            words.pop(0)
        elif words[0] == "for":
            words = []
        elif match := ASSIGNED.fullmatch(words[0]):
            env[match[1]] = filled(match[2], {**known, **env})
            words.pop(0)
        else:
            break
    names = frozenset(each for word in (*line.words, line.stdin or "") for each in variables(word))
    return Program(
        words=_unwrapped([filled(word, known) for word in words], env),
        env={**known, **env} if words else env,
        names=names,
        writes=tuple(filled(word, known) for word in line.writes),
        reads=tuple(filled(word, known) for word in line.reads),
        stdin=None if line.stdin is None else line.stdin.replace(LITERAL, "$"),
        comment=line.comment,
        piped=line.piped,
        folder=folder,
    )


WRAPPERS = {
    "nohup": "", "setsid": "", "time": "", "command": "", "exec": "", "builtin": "", "unbuffer": "",
    "sudo": "ugpCh", "nice": "n", "ionice": "cnp", "stdbuf": "", "chrt": "", "taskset": "c", "env": "uCS",
    "timeout": "sk", "xargs": "InPdLEsa", "watch": "n", "flock": "wE", "strace": "oe", "srun": "", "doas": "u",
}  # fmt: skip
"""Programs that run another one → their letters that take a value."""
POSITIONAL = {"timeout": 1, "taskset": 1, "flock": 1}


def _unwrapped(words: list[str], env: dict[str, str]) -> tuple[str, ...]:
    """The program that is really run; what `env` sets is added to `env`."""
    for _ in range(20):
        if not words or (name := words[0].rpartition("/")[2]) not in WRAPPERS:
            break
        rest = words[1:]
        while rest and (rest[0].startswith("-") or (name == "env" and ASSIGNED.fullmatch(rest[0]))):
            word = rest.pop(0)
            if match := ASSIGNED.fullmatch(word):
                env[match[1]] = match[2]
            elif rest and len(word) == 2 and word[1] in WRAPPERS[name]:
                rest.pop(0)
        rest = rest[POSITIONAL.get(name, 0) :]
        if not rest:
            break
        words = rest
    return tuple(words)


def filled(word: str, known: Mapping[str, str]) -> str:
    """A word with the variables that are known, and the defaults of those that are not."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[4]
        return known.get(name) or (match[3] if match[2] and match[3] is not None else match[0])

    return VARIABLE.sub(value, word)[: LONGEST // 4].replace(LITERAL, "$")


def variables(text: str) -> Iterator[str]:
    """Names of the variables whose values a word is given."""
    for match in VARIABLE.finditer(text):
        yield match[1] or match[4]


# --- characters ---------------------------------------------------------------------------------------------------


def _lines(text: str) -> list[_Line]:
    """Cut at operators; quotes, comments, substitutions and here-documents are understood."""
    cut = _Cut(text.replace("\\\r\n", " ").replace("\\\n", " "))
    while cut.at < len(cut.text):
        cut.step()
    cut.end()
    return [*cut.done, cut.line]


class _Cut:
    """One pass over a command line."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.line, self.done = _Line(), list[_Line]()
        self.word, self.had = list[str](), False
        self.into: str | None = None
        """The redirection whose target comes next."""
        self.pending: list[tuple[_Line, str, bool]] = []
        """Here-documents that begin behind this line: whose, the end mark, whether tabs go."""

    def end(self) -> None:
        """A word is whole."""
        if self.had:
            whole, line = "".join(self.word), self.line
            if self.into is None:
                line.words.append(whole)
            elif self.into in ("<<", "<<-"):
                self.pending.append((line, whole.replace(LITERAL, "$"), self.into == "<<-"))
            elif self.into == "<<<":
                line.stdin = whole
            elif self.into == "<":
                line.reads.append(whole)
            elif self.into not in (">&", "<&") or not whole.isdigit():
                line.writes.append(whole)
            self.into = None
        self.word.clear()
        self.had = False

    def step(self) -> None:
        """One sign, or one part that belongs together."""
        text, at, sign = self.text, self.at, self.text[self.at]
        if sign == "'":
            stop = text.find("'", at + 1)
            stop = len(text) if stop < 0 else stop
            self.take(text[at + 1 : stop].replace("$", LITERAL), stop + 1)
        elif sign == '"':
            self.take("", _quoted(text, at + 1, self.word, self.line.inner))
        elif sign == "\\":
            self.take(text[at + 1 : at + 2].replace("$", LITERAL), at + 2)
        elif sign == "`" or (sign == "$" and text.startswith("$(", at)):
            stop, inner = _substituted(text, at)
            self.line.inner.append(inner)
            self.take(text[at:stop].replace("$", LITERAL), stop)
        elif sign == "#" and not self.had:
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            self.line.comment, self.at = text[at + 1 : stop].strip(), stop
        elif sign in " \t\r":
            self.end()
            self.at += 1
        elif sign in "<>&0123456789" and (match := REDIRECT.match(text, at)) and (not self.had or sign in "<>"):
            self.redirect(match)
        elif sign in ";&|\n()":
            self.operator(next(each for each in OPERATORS if text.startswith(each, at)))
        else:
            self.take(sign, at + 1)

    def take(self, more: str, at: int) -> None:
        """More of the word."""
        self.word.append(more)
        self.had, self.at = True, at

    def redirect(self, match: re.Match[str]) -> None:
        """A redirection, or a program in the place of a file."""
        text, begin = self.text, match.start(1)
        if match[1] in "<>" and text.startswith("(", begin + 1):
            stop, inner = _substituted(text, begin)
            self.line.inner.append(inner)
            self.take("/dev/fd/9", stop)
            return
        self.end()
        self.into, self.at = match[1], match.end()

    def operator(self, sign: str) -> None:
        """The end of a program's words."""
        self.end()
        self.into = None
        self.at += len(sign)
        line = self.line
        if line.words or line.inner or line.writes or line.comment or line.reads:
            self.done.append(line)
        self.line = _Line(piped=sign in ("|", "|&"))
        if sign == "\n":
            self.documents()

    def documents(self) -> None:
        """Here-documents that begin at this line's start."""
        for line, mark, tabs in self.pending:
            body: list[str] = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                row, self.at = self.text[self.at : stop], stop + 1
                if (row.lstrip("\t") if tabs else row).rstrip("\r") == mark:
                    break
                body.append(row)
            line.stdin = "\n".join(body) + "\n"
        self.pending = []


def _quoted(text: str, at: int, word: list[str], inner: list[str]) -> int:
    """The rest of a double-quoted part; where it goes on behind it."""
    size = len(text)
    while at < size and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            word.append(text[at + 1 : at + 2].replace("$", LITERAL))
            at += 2
        elif text.startswith("$(", at) or text[at] == "`":
            stop, found = _substituted(text, at)
            inner.append(found)
            word.append(text[at:stop].replace("$", LITERAL))
            at = stop
        else:
            word.append(text[at])
            at += 1
    return at + 1


def _substituted(text: str, at: int) -> tuple[int, str]:
    """The end of a `$(…)`, `<(…)` or backtick part that begins here, and what is in it."""
    if text[at] == "`":
        stop = text.find("`", at + 1)
        stop = len(text) if stop < 0 else stop
        return stop + 1, text[at + 1 : stop]
    depth, begin, size = 0, at + 2, len(text)
    at += 1
    quote = ""
    while at < size:
        sign = text[at]
        if quote:
            quote = "" if sign == quote else quote
            at += sign == "\\" and quote == '"'
        elif sign in "'\"":
            quote = sign
        elif sign == "\\":
            at += 1
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
            if depth == 0:
                return at + 1, text[begin:at]
        at += 1
    return size, text[begin:]
