"""What can be typed: every command with its options and the words that explain them."""

import argparse
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ABOUT = """prill assays automated post-training: an agent, a base model and a hard budget in; a sealed,
measured and judged score out, in which every number can be walked back to bytes.

  prill run --suite smoke           plan and run a suite here, with progress; again: carries on, or does nothing
  prill score smoke                 its standings, with a reason for every cell
  prill show runs/ID                the story of one run, in a screen
  prill publish smoke --to site     pages that open from disk"""

RUN = """What is done is not done again. An agent at work outlives this command: the same command finds it again. One
that was cut off goes on in its own session with what is left of time and money, or is lost, listed, and replaced.
Ctrl-C lets the runs under way end and begins no other; a second Ctrl-C leaves, and agents work on (`prill stop`)."""

MEASURE = """A measuring that was cut off carries on at the item where it stopped. The number stands on all items that
were asked: what is cut off, empty, refused or too late counts as it is marked. What the server spoiled is asked again
or ends in an error, never in a number."""

DIFF = "Each file is what `prill score SUITE --format json` printed, or the standings.json of a site."

IMPORT = """A tree becomes a run folder for each of its runs below --runs; what was imported before is left alone, and
the report accounts for every entry. Tables become standings."""

RAW = argparse.RawDescriptionHelpFormatter


def parser(families: Iterable[Callable[[Any], None]] = ()) -> ArgumentParser:
    """The commands about runs, and those that each of the families adds."""
    whole = ArgumentParser(prog="prill", description=ABOUT, formatter_class=RAW)
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    running(commands)
    reading(commands)
    looking(commands)
    for add in families:
        add(commands)
    return whole


def running(commands: Any) -> None:
    """Commands that make runs."""
    run = command(commands, "run", "Plan and run a suite, or carry one run folder on", RUN)
    run.add_argument("folder", nargs="?", type=Path, help="one run folder to carry on (instead of --suite)")
    run.add_argument("--suite", metavar="NAME", help="the suite to run")
    run.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at a time (default: 2)")
    stop = command(commands, "stop", "Stop agents at work; such runs do not count and are listed as lost")
    stop.add_argument("folder", nargs="+", type=Path, help="run folders, or a folder of them")
    measuring(commands)
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


def measuring(commands: Any) -> None:
    """The command that measures without a suite."""
    made = command(commands, "measure", "Put benchmarks to a model folder, or measure a finished run again", MEASURE)
    made.add_argument("folder", type=Path, metavar="FOLDER", help="a model folder, or a run folder")
    made.add_argument(
        "--benchmark", action="append", default=[], metavar="NAME", help="for a model folder; may be repeated"
    )
    made.add_argument("--limit", type=int, metavar="N", help="only the first N items (default: all)")
    made.add_argument("--data", type=Path, metavar="PLACE", help="items from this file or folder, not from the hub")
    made.add_argument("--engine", default="transformers", metavar="NAME", help="what serves it (default: transformers)")
    made.add_argument("--sandbox", default="bubblewrap", metavar="NAME", help="what shuts it in (default: bubblewrap)")
    made.add_argument("--to", type=Path, default=Path("measured"), metavar="DIR", help="results (default: measured)")
    made.add_argument("--again", action="store_true", help="for a run: once more, beside what was measured")


def reading(commands: Any) -> None:
    """Commands that read runs."""
    score = command(commands, "score", "Print a suite's standings, with a reason for every cell")
    score.add_argument("suite", metavar="SUITE")
    score.add_argument("--format", choices=("table", "json", "csv", "md"), default="table", help="default: table")
    score.add_argument(
        "--explain", metavar="ENTRANT/MODEL/BENCHMARK", help="one cell, down to the files and digests behind it"
    )
    publish = command(commands, "publish", "Write a suite's standings and runs as a static site that opens from disk")
    publish.add_argument("suite", metavar="SUITE")
    publish.add_argument("--to", type=Path, default=Path("site"), metavar="DIR", help="default: site")
    for made in (score, publish):
        made.add_argument("--partial", action="store_true", help="a headline even where cells are missing; it says so")
        made.add_argument("--sandbox", metavar="NAME", help="runs made with this sandbox instead of the suite's")
        made.add_argument(
            "--resamples", type=int, default=10_000, metavar="N", help="for intervals; 0: none (default: 10000)"
        )
        made.add_argument("--draw", type=int, default=0, metavar="S", help="seed of the resamples (default: 0)")
        of_runs(made)
    diff = command(commands, "diff", "Say what changed between two standings, and why", DIFF)
    diff.add_argument("before", type=Path, metavar="STANDINGS_A")
    diff.add_argument("after", type=Path, metavar="STANDINGS_B")
    bring = command(commands, "import", "Bring other people's results in, as run folders or as standings", IMPORT)
    bring.add_argument("kind", metavar="KIND", help="posttrainbench (a results tree) or posttrainbench_tables (CSVs)")
    bring.add_argument("tree", type=Path, metavar="TREE")
    bring.add_argument("--suite", required=True, metavar="NAME", help="the suite whose cells they are")
    bring.add_argument("--to", type=Path, metavar="FILE", help="the report, or the standings, as JSON into this file")
    of_runs(bring)
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
