"""Steps of a trajectory → deeds: what ran, was written, read, reached, searched and shown, each with its step.

A script that is run is read as it was last written in the trajectory, else as it lies in the workspace. Modules of the
agent's own that it imports are read with it. What cannot be read is a deed too, so that nobody takes it for nothing.
Not covered: see the package.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from prill.conduct import python, tools
from prill.conduct.shell import LONGEST, Program, programs
from prill.record import Step

Verb = Literal["ran", "wrote", "read", "reached", "searched", "dumped", "unread"]
MOST_CHARACTERS = 64_000_000
"""Of code that is read in one run; what comes after that is unread."""
MOST_FILES = 30
"""Modules that are read with one script."""
BOX = {
    "HOME": "/home/agent", "PWD": "/home/agent/task", "PRILL_SUBMISSION": "/home/agent/task/final_model",
    "PRILL_DATA": "/data", "PRILL_HUB": "/hub", "PRILL_BASE_MODEL": "/hub/base", "PRILL_ITEMS": "/items/items.jsonl",
}  # fmt: skip
"""What a box's variables say, for the spelling of paths."""
HERE = re.compile(r"\$\((?:[^()]|\((?:[^()]|\([^()]{0,200}\)){0,200}\)){0,300}\)|`[^`]{0,200}`")
"""A substitution in a path; one that asks for the script's own folder, or the current one, is the current one."""
ROOT = re.compile(r"/home/[^/]+/(?:task|workspace)(?=/|$)|/workspace(?=/|$)")
"""The agent's own folder, in prill's boxes and others'."""


@dataclass(frozen=True)
class Deed:
    """One thing that was done."""

    step: Step
    verb: Verb
    what: str
    """A path (in the agent's folder: relative), an address, a question, a command line."""
    how: str
    """The tool, program or call."""
    by: str = ""
    """The script that did it, if it was one."""
    sure: bool = True
    """False where it is only what a text seems to say."""
    names: frozenset[str] = frozenset()
    """Variables of the environment that it was given."""
    text: str | None = None
    """What was written, or the code that ran; `None`: not known."""
    said: str = ""
    """The beginning of what came back."""

    @property
    def quote(self) -> str:
        """The deed in a few words."""
        return f"{self.how}: {self.what}"[:300]


def deeds(
    steps: Iterable[Step], look: Callable[[str], str | None] = lambda path: None, given: Mapping[str, str] | None = None
) -> list[Deed]:
    """All deeds of a trajectory in order. Total.

    `look` gives the text of a file of the workspace, or `None`; `given` are variables that every program has.
    """
    steps = list(steps)
    said = {step.call: step.text[:2_000] for step in steps if step.kind == "result" and step.call}
    reader = _Reader(look, BOX, given or {})
    found: list[Deed] = []
    for step in steps:
        if step.kind == "command":
            answer = said.get(step.call or "", "")
            found += [replace(deed, said=answer) if answer else deed for deed in reader.of(step)]
    return found


def place(path: str, folder: str = "", env: Mapping[str, str] = BOX) -> str:
    """A path in its one form: relative where it lies in the agent's folder."""
    home = env.get("HOME", "/home/agent")
    whole = re.sub(r"\$\{?(\w+)\}?", lambda found: env.get(found[1], found[0]), path[:2_000])
    if "$(" in whole or "`" in whole:
        whole = HERE.sub(lambda found: "." if re.search("dirname|pwd", found[0]) else found[0], whole)
    if whole == "~" or whole.startswith("~/"):
        whole = home + whole[1:]
    if folder and not whole.startswith("/"):
        whole = f"{place(folder, '', env)}/{whole}"
    whole = straight(whole)
    match = ROOT.match(whole)
    return (whole[match.end() :].lstrip("/") or ".") if match else whole


def straight(path: str) -> str:
    """A path without `.`, `..` and doubled slashes, as far as that can be told from its words."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", ".") and not (part == ".." and path.startswith("/")):
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."


class _Reader:
    """One pass, with the files as they are at that time."""

    def __init__(self, look: Callable[[str], str | None], env: Mapping[str, str], given: Mapping[str, str]) -> None:
        self.look, self.env, self.given = look, dict(env), dict(given)
        self.files: dict[str, str] = {}
        self.left = MOST_CHARACTERS
        self.read_code: dict[tuple[str, str, str], python.Text] = {}

    # --- tools ---

    def of(self, step: Step) -> Iterator[Deed]:
        """The deeds of one command."""
        act = tools.act(step)
        if self.left <= 0:
            yield Deed(step, "unread", "more code than is read in one run", act.kind)
            return
        self.left -= len(act.text)
        if act.kind == "shell":
            yield from self.shell(step, act.text, "")
        elif act.kind in ("write", "edit"):
            for path, old, new in act.changes:
                own = place(path, "", self.env)
                before = self.text(own) if act.kind == "edit" else None
                after = new if act.kind == "write" else None if before is None else before.replace(old, new, 1)
                if after is None:
                    self.files.pop(own, None)
                else:
                    self.files[own] = after
                yield Deed(step, "wrote", own, act.tool, text=new)
        elif act.kind == "read":
            yield Deed(step, "read", place(act.text, "", self.env), act.tool)
        elif act.kind == "fetch":
            for url in python.URL.findall(act.text) or [act.text]:
                yield Deed(step, "reached", url, act.tool)
        elif act.kind == "search":
            yield Deed(step, "searched", act.text, act.tool)

    def text(self, path: str) -> str | None:
        """A file as it was last written, else as it lies there."""
        return self.files[path] if path in self.files else self.look(path)

    # --- shells ---

    def shell(self, step: Step, text: str, by: str, depth: int = 0, env: Mapping[str, str] | None = None,
              folder: str = "") -> Iterator[Deed]:  # fmt: skip
        """The deeds of a command line."""
        before: Program | None = None
        sourced: dict[str, str] = {}
        if len(text) > LONGEST:
            yield Deed(step, "unread", f"a command of {len(text)} characters", "shell", by=by)
        for program in programs(text, self.given if env is None else env, folder):
            program = replace(program, env={**sourced, **program.env}) if sourced else program
            yield from self.program(step, program, by, depth, before if program.piped else None)
            if program.words[:1] in (("source",), (".",)) and len(program.words) > 1:
                sourced |= tools.assigned(self.text(place(program.words[1], program.folder, self.env)) or "")
            before = program

    def program(self, step: Step, program: Program, by: str, depth: int, before: Program | None) -> Iterator[Deed]:
        """The deeds of one program."""

        def at(path: str) -> str:
            return place(path, program.folder, {**self.env, **program.env})

        if not program.words:
            return
        name = program.words[0].rpartition("/")[2]
        fed = program.stdin if program.stdin is not None else self.fed(before, at)
        yield from self.written(step, program, name, fed, at, by)
        line = " ".join(program.words)[:2_000]
        code, script = self.code(program, name, fed, at)
        names = program.names - set(program.env)
        if name in tools.KEYS and tools.KEYS[name] not in program.env:
            names |= {tools.KEYS[name]}
        yield Deed(step, "ran", line, name, by=script or by, names=names, text=code)
        for path in tools.read_files(name, program.words[1:], program.reads):
            yield Deed(step, "read", at(path), name, by=by)
        if tools.shows_all(name, program.words[1:]):
            yield Deed(step, "dumped", line, name, by=by)
        for url, how, sure in tools.reached(name, program.words[1:], {**self.env, **program.env}):
            yield Deed(step, "reached", url, how, by=by, sure=sure, names=names)
        if script is not None and code is None:
            yield Deed(step, "unread", script, name, by=script)
            for url in tools.named(program.comment):
                yield Deed(step, "reached", url, "the command's own words", by=script)
        elif code is not None and depth < 4:
            yield from self.inside(step, program, name, code, script or by, depth)

    def fed(self, before: Program | None, at: Callable[[str], str]) -> str | None:
        """What a program gets from the one before it, where that only prints."""
        if before is None or not before.words:
            return None
        name = before.words[0].rpartition("/")[2]
        if name in ("echo", "printf"):
            return " ".join(word for word in before.words[1:] if not word.startswith("-"))
        if name == "cat":
            if before.stdin is not None:
                return before.stdin
            return "\n".join(self.text(at(word)) or "" for word in before.words[1:]) or None
        return None

    def code(
        self, program: Program, name: str, fed: str | None, at: Callable[[str], str]
    ) -> tuple[str | None, str | None]:
        """The code that a program is given, and the script that it is in."""
        given = tools.script(name, program.words[1:])
        if given is None:
            own = program.words[0]
            if "/" not in own or "bin/" in own:
                return None, None
            return self.text(at(own)), None if at(own).startswith(("/", "$")) else at(own)
        kind, word = given
        if kind == "text":
            return word, None
        if kind == "stdin" and program.reads:
            return tools.code_of(at(program.reads[-1]), self.text(at(program.reads[-1]))), at(program.reads[-1])
        if kind == "stdin":
            return fed, None if fed is not None or not program.piped else "standard input"
        if kind == "module":
            path = word.replace(".", "/")
            return next(
                ((text, at(each)) for each in (f"{path}.py", f"{path}/__main__.py")
                 if (text := self.text(at(each))) is not None), (None, None)
            )  # fmt: skip
        return tools.code_of(at(word), self.text(at(word))), at(word)

    def inside(self, step: Step, program: Program, name: str, code: str, by: str, depth: int) -> Iterator[Deed]:
        """The deeds of code that runs."""
        if tools.is_shell(name, by, code):
            self.left -= len(code)
            yield from self.shell(step, code, by, depth + 1, program.env, program.folder)
            return
        waiting, seen = [(by, code)], {by}
        while waiting:
            path, text = waiting.pop()
            found = self.parsed(text, program)
            yield from self.said(step, program, found, path, by, depth)
            for module in sorted(found.imports):
                own = straight(f"{by.rpartition('/')[0] or '.'}/{module.replace('.', '/')}.py")
                if own not in seen and len(seen) < MOST_FILES and (more := self.text(own)) is not None:
                    seen.add(own)
                    waiting.append((own, more))

    def parsed(self, code: str, program: Program) -> python.Text:
        """A program's text, read once for each surroundings."""
        env = {name: value for name, value in program.env.items() if name not in self.env}
        urls = tuple(word for word in program.words[1:] if "://" in word)
        key = (code, repr(sorted(env.items())), " ".join(urls))
        if key not in self.read_code:
            self.left -= len(code)
            self.read_code[key] = python.read(code, env, urls) if self.left > 0 else python.Text(unread="too much code")
        return self.read_code[key]

    def said(self, step: Step, program: Program, found: python.Text, path: str, by: str, depth: int) -> Iterator[Deed]:
        """What a Python program's text says that it does."""
        names = frozenset(found.names)
        for url, how, sure, line, held in found.reaches:
            where = f"{how} (line {line} of {path or 'the code'})" if line else how
            yield Deed(step, "reached", url, where, by=by, sure=sure, names=held)
        for verb, paths in (("wrote", found.writes), ("read", found.reads)):
            for each in paths[:1_000]:
                yield Deed(step, verb, place(each, program.folder, self.env), "python", by=by)  # type: ignore[arg-type]
        if found.dumps:
            yield Deed(step, "dumped", "the whole environment", "python", by=by)
        if names:
            yield Deed(step, "ran", f"takes {', '.join(sorted(names))}", "python", by=by, names=names, text="")
        for line_ in found.shells[:1_000]:
            if depth < 4:
                yield from self.shell(step, line_, by, depth + 1, program.env, program.folder)
        if found.unread:
            yield Deed(step, "unread", found.unread, "python", by=by)

    # --- files ---

    def written(
        self, step: Step, program: Program, name: str, fed: str | None, at: Callable[[str], str], by: str
    ) -> Iterator[Deed]:
        """What a program writes, and what the files hold then."""
        text: str | None = None
        if name in ("cat", "tee") and not [word for word in program.words[1:] if name == "cat" and word != "-"]:
            text = fed
        elif name in ("echo", "printf"):
            text = " ".join(word for word in program.words[1:] if word not in ("-e", "-n", "-en", "%s\\n"))
        for path in program.writes:
            if path not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
                yield self.wrote(step, at(path), name, text, by)
        for path, source in tools.changed(name, program.words[1:]):
            own = at(path)
            held = text if name == "tee" else self.text(at(source)) if source else None
            if name == "sed":
                held = tools.replaced(self.text(own), program.words[1:])
            yield self.wrote(step, own, name, held, by)

    def wrote(self, step: Step, path: str, how: str, text: str | None, by: str) -> Deed:
        """One file that is written."""
        if text is None:
            self.files.pop(path, None)
        else:
            self.files[path] = text
        return Deed(step, "wrote", path, how, by=by, text=text)


def commands_of(deed: Deed) -> dict[str, Any]:
    """A deed's place for a citation."""
    return {"offset": deed.step.offset, "length": deed.step.length, "step": deed.step.step, "quote": deed.quote}
