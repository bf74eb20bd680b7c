"""What can be typed: every command with its options and the words that explain them."""

import argparse
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

ABOUT = """prill assays automated post-training: an agent, a base model and a hard budget in; a sealed,
measured and judged score out, in which every number can be walked back to bytes.

  prill run --suite smoke           plan and run a suite here, with progress; again: carries on, or does nothing
  prill score smoke                 its standings, with a reason for every cell
  prill show runs/ID                the story of one run, in a screen
  prill publish smoke --to site     pages that open from disk"""

RUN = """What is done is not done again; a solve that was cut off is lost, listed, and another takes its place.
Ctrl-C lets the runs under way end and begins no other; a second Ctrl-C kills them (they are then lost)."""

RAW = argparse.RawDescriptionHelpFormatter


def parser() -> ArgumentParser:
    """All commands and their options."""
    whole = ArgumentParser(prog="prill", description=ABOUT, formatter_class=RAW)
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    running(commands)
    reading(commands)
    looking(commands)
    return whole


def running(commands: Any) -> None:
    """Commands that make runs."""
    run = command(commands, "run", "Plan and run a suite, or carry one run folder on", RUN)
    run.add_argument("folder", nargs="?", type=Path, help="one run folder to carry on (instead of --suite)")
    run.add_argument("--suite", metavar="NAME", help="the suite to run")
    run.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at a time (default: 2)")
    plan = command(commands, "plan", "Say what a suite would run, and make the run folders")
    plan.add_argument("suite", metavar="SUITE")
    plan.add_argument("--dry", action="store_true", help="only say it, make no folder")
    for made in (run, plan):
        made.add_argument(
            "--entrant", action="append", metavar="NAME", help="only this one; may be repeated (default: the suite's)"
        )
        made.add_argument("--seeds", type=int, metavar="N", help="seeds 0..N-1 (default: the suite's number)")
        made.add_argument("--seed", type=int, action="append", metavar="S", help="exactly this seed; may be repeated")
        made.add_argument(
            "--sandbox", metavar="NAME", help="instead of the suite's; `local` does not isolate, and records say so"
        )
        of_runs(made)


def reading(commands: Any) -> None:
    """Commands that read runs."""
    score = command(commands, "score", "Print a suite's standings, with a reason for every cell")
    score.add_argument("suite", metavar="SUITE")
    score.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    publish = command(commands, "publish", "Write a suite's standings and runs as a static site that opens from disk")
    publish.add_argument("suite", metavar="SUITE")
    publish.add_argument("--to", type=Path, default=Path("site"), metavar="DIR", help="default: site")
    for made in (score, publish):
        made.add_argument("--partial", action="store_true", help="a headline even where cells are missing; it says so")
        made.add_argument("--sandbox", metavar="NAME", help="runs made with this sandbox instead of the suite's")
        of_runs(made)
    show = command(commands, "show", "Tell the story of one run, in a screen")
    show.add_argument("folder", type=Path, help="a run folder")


def looking(commands: Any) -> None:
    """Commands about definitions and plug-ins."""
    where = command(commands, "where", "Say where a definition or plug-in of that name stands, and what it is")
    where.add_argument("name", nargs="?", help="a name, such as smoke or bubblewrap; none: list all")
    check = command(commands, "check", "Check definitions: types, names, weights, pinned digests")
    check.add_argument("folder", nargs="*", type=Path, help="folders of definitions (default: prill's own)")


def command(commands: Any, name: str, does: str, more: str = "") -> ArgumentParser:
    """One command; each takes folders of definitions."""
    description = f"{does}.\n\n{more}".strip()
    made: ArgumentParser = commands.add_parser(name, help=does, description=description, formatter_class=RAW)
    made.add_argument(
        "--definitions",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="your definitions, read before prill's own; may be repeated",
    )
    return made


def of_runs(made: ArgumentParser) -> None:
    """Where run folders are."""
    made.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="the folder of run folders (default: runs)"
    )
