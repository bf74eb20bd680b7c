"""`prill trajectory`: the steps of a run shown and searched, and secrets taken out of a raw trace."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command

if TYPE_CHECKING:
    from prill.record import Step

LINES, WIDTH = 12, 2000
"""Of a step's text, without --full."""
KINDS = ("message", "command", "result", "other")

MORE = """Steps keep their numbers for ever: findings cite them. Where the agent is not written up yet, its raw output
is read as far as it goes. Escape codes are taken out of output before it is shown; in what the agent wrote itself,
every hidden character is spelt."""

SEARCH = """PATTERN is a regular expression; with --plain it is text. The exit code is 1 where nothing is found.

  prill trajectory search runs/ID 'pip install|huggingface' --kind command"""

REDACT = """Known values are those of the variables named with --secret; shapes of keys (sk-…, hf_…, tokens) and
values in places named after a secret are always looked for. How many of each were replaced is printed; values never
are.

  prill trajectory redact runs/ID/raw/stdout --to clean.jsonl --secret ANTHROPIC_API_KEY"""


def add(commands: Any) -> None:
    """The family and its three commands."""
    family = command(commands, "trajectory", "Show or search the steps of a run, or take secrets out of a trace")
    inner = family.add_subparsers(dest="trajectory", metavar="COMMAND", required=True)
    made = command(inner, "show", "Show the steps of a run", MORE)
    made.add_argument("folder", type=Path, metavar="FOLDER", help="a run folder")
    made.add_argument("--step", type=int, metavar="N", help="only this one, whole")
    made.add_argument("--from", dest="first", type=int, metavar="N", help="from this one on")
    made.add_argument("--to", dest="last", type=int, metavar="M", help="up to this one")
    made.add_argument("--kind", choices=KINDS, help="only steps of this kind")
    made.add_argument("--full", action="store_true", help=f"whole texts (otherwise {LINES} lines of each)")
    made.set_defaults(do=show)
    made = command(inner, "search", "Find the steps of a run in which something is said", SEARCH)
    made.add_argument("folder", type=Path, metavar="FOLDER", help="a run folder")
    made.add_argument("pattern", metavar="PATTERN")
    made.add_argument("--plain", action="store_true", help="PATTERN is text, not a regular expression")
    made.add_argument("--ignore-case", action="store_true", help="capitals or not")
    made.add_argument("--kind", choices=KINDS, help="only in steps of this kind")
    made.add_argument("--json", action="store_true", help="a JSON object a line")
    made.add_argument("--seconds", type=float, default=20.0, metavar="S", help="the most it may take (default: 20)")
    made.set_defaults(do=search)
    made = command(inner, "redact", "Take secrets out of a raw trace", REDACT)
    made.add_argument("file", type=Path, metavar="FILE", help="raw output of an agent, or any text")
    made.add_argument("--to", type=Path, required=True, metavar="FILE", help="the same without secrets")
    made.add_argument("--readable", type=Path, metavar="FILE", help="also a text for people")
    made.add_argument(
        "--agent", default="any", metavar="NAME", help="whose output it is, for --readable (default: any)"
    )
    made.add_argument(
        "--secret", action="append", default=[], metavar="NAME", help="a variable that holds a secret; may be repeated"
    )
    made.set_defaults(do=redact)


def show(chosen: argparse.Namespace) -> int:
    """`prill trajectory show`."""
    from prill.errors import DefinitionError
    from prill.trajectory.search import picked

    if chosen.step is not None and (chosen.first is not None or chosen.last is not None):
        raise DefinitionError("give --step N, or --from N --to M, not both")
    found = 0
    total = 0
    for step in steps_of(chosen.folder):
        total = step.step
        for each in picked([step], step=chosen.step, first=chosen.first, last=chosen.last, kind=chosen.kind):
            print("\n".join(told(each, full=chosen.full or chosen.step is not None)), end="\n\n")
            found += 1
    if not found:
        raise DefinitionError(
            f"no such step: {chosen.folder} has steps 1 to {total}" if total else "there are no steps"
        )
    return 0


def told(step: "Step", *, full: bool) -> list[str]:
    """A step as lines for a terminal."""
    from prill.story import clock, one_line

    time = "" if step.seconds is None else f" · {clock(step.seconds)}"
    tool = f" · {one_line(step.tool)}" if step.tool else ""
    thought = " · thought" if step.thought else ""
    head = f"step {step.step} · {step.kind}{thought}{tool}{time} · bytes {step.offset}+{step.length}"
    lines = safe(step, step.text).split("\n")
    if full:
        return [head, *lines]
    kept = [line if len(line) <= WIDTH else f"{line[:WIDTH]}… {len(line) - WIDTH:,} more characters" for line in lines]
    more = [f"… {len(lines) - LINES:,} more lines (--full)"] if len(lines) > LINES else []
    return [head, *kept[:LINES], *more]


def safe(step: "Step", text: str) -> str:
    """Text of a step as a terminal may get it. Output loses its escape codes and what was overwritten; what the agent
    wrote loses nothing, or it could hide a command behind a carriage return."""
    from prill.display import shown
    from prill.story import plain

    return plain(text if step.kind in ("command", "message") else shown(text))


def search(chosen: argparse.Namespace) -> int:
    """`prill trajectory search`."""
    import json

    from prill.story import clock, one_line
    from prill.trajectory.search import picked
    from prill.trajectory.search import search as find

    steps = picked(steps_of(chosen.folder), kind=chosen.kind)
    found = 0
    for hit in find(steps, chosen.pattern, plain=chosen.plain, any_case=chosen.ignore_case, seconds=chosen.seconds):
        found += 1
        step, line = hit.step, hit.line
        if chosen.json:
            fact = {"step": step.step, "kind": step.kind, "seconds": step.seconds, "line": hit.number, "text": line}
            print(json.dumps(fact))
        else:
            time = "" if step.seconds is None else f" {clock(step.seconds)}"
            words = one_line(safe(step, line))
            print(f"{step.step}{time} {step.kind}: {words if len(words) <= WIDTH else words[:WIDTH] + '…'}")
    return 0 if found else 1


def steps_of(place: Path) -> "Iterator[Step]":
    """The steps of a run folder: as written up, or out of the raw output while they are not."""
    from prill import plugins
    from prill.errors import DefinitionError
    from prill.folder import RunFolder
    from prill.trajectory import atif

    folder = RunFolder(place)
    spec = folder.spec()
    document = folder.steps()
    if document:
        yield from atif.steps_of(document)
    elif folder.stdout.is_file():
        with folder.stdout.open("rb") as lines:
            yield from plugins.get("agents", spec.entrant.agent).read(lines)
    else:
        raise DefinitionError(f"{place}: nothing was printed yet; `prill show {place}` says how far the run is")


def redact(chosen: argparse.Namespace) -> int:
    """`prill trajectory redact`."""
    import os
    from contextlib import ExitStack

    from prill.errors import DefinitionError
    from prill.trajectory import forms

    if not chosen.file.is_file():
        raise DefinitionError(f"{chosen.file}: there is no such file")
    secrets = {}
    for name in chosen.secret:
        if not os.environ.get(name):
            raise DefinitionError(f"--secret {name}: no variable of that name is set; export it, or leave it out")
        secrets[name] = os.environ[name]
    targets = [chosen.to, *([chosen.readable] if chosen.readable else [])]
    for target in targets:
        if target.exists():
            raise DefinitionError(f"{target} is there already; give another place, nothing is overwritten")
    beside = [target.with_name(f".{target.name}.{os.getpid()}") for target in targets]
    try:
        with ExitStack() as opened:
            source = opened.enter_context(chosen.file.open("rb"))
            raw, *readable = [opened.enter_context(file.open("wb")) for file in beside]
            made = forms.write(chosen.agent, source, secrets, raw, readable[0] if readable else None)
        for file, target in zip(beside, targets, strict=True):
            file.rename(target)
    finally:
        for file in beside:
            file.unlink(missing_ok=True)
    for name, number in sorted(made.counts.items()):
        print(f"{number:>7,}  {name}")
    print(f"{sum(made.counts.values()):>7,}  replaced in {made.raw_bytes:,} bytes")
    return 0
