"""The command line: a function a command, none longer than a screen. Errors are one line and an exit code.

Exit codes: 0 done · 1 something of ours failed · 2 the command or a definition is wrong · 130 interrupted.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from prill import arguments
from prill.errors import DefinitionError, PrillError

if TYPE_CHECKING:
    from prill.catalog import Catalog
    from prill.record import Run
    from prill.spec import RunSpec
    from prill.standings import Board


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the process's exit code comes back."""
    chosen = parser().parse_args(argv)
    try:
        return int((COMMANDS.get(chosen.command) or chosen.do)(chosen))
    except DefinitionError as error:
        print(f"prill: {error}", file=sys.stderr)
        return 2
    except PrillError as error:
        print(f"prill: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("prill: interrupted; the same command again carries on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(
            f"prill: {place}{error.strerror or error}; free space or give a writable place, then run it again",
            file=sys.stderr,
        )
        return 1


def parser() -> argparse.ArgumentParser:
    """All commands: those of this file, and each family of the folder `commands/`, found by its file."""
    names = sorted(file.stem for file in Path(__file__).with_name("commands").glob("[a-z]*.py"))
    return arguments.parser(import_module(f"prill.commands.{name}").add for name in names)


# --- commands ----------------------------------------------------------------------------------------------


def run(chosen: argparse.Namespace) -> int:
    """`prill run`."""
    from prill.catalog import Catalog
    from prill.folder import RunFolder
    from prill.progress import Progress
    from prill.run import carry_all, match, planning

    if (chosen.folder is None) == (chosen.suite is None):
        raise DefinitionError("give either --suite NAME or one run folder; `prill where` lists the suites")
    catalog = Catalog(chosen.definitions)
    if chosen.folder is not None:
        folder = RunFolder(chosen.folder)
        folder.spec()
        todo, aside = [folder], []
    else:
        specs = asked(catalog, chosen)
        with planning(chosen.runs):
            work = match(specs, chosen.runs)
        todo, aside = work.todo, work.elsewhere
        print(
            f"{chosen.suite}: {len(specs)} runs · {len(work.done)} done · {len(todo)} to do · {len(work.lost)} lost",
            flush=True,
        )
        for other in aside:
            print(f"  {other.path} is being run by another process", flush=True)
        if not todo:
            print(f"nothing to do; `prill score {chosen.suite} --runs {chosen.runs}` prints the standings")
            return 1 if aside else 0
    by_id = {folder.id: folder for folder in todo}
    progress = Progress(len(todo), lambda id: by_id[id].pace() if id in by_id else None)
    failures = carry_all(
        todo, catalog, progress.tell, jobs=max(1, chosen.jobs), tick=progress.tick, tell_all=progress.say
    )
    for line in failures:
        print(f"prill: {line}", file=sys.stderr)
    return 1 if failures else 0


def asked(catalog: "Catalog", chosen: argparse.Namespace) -> "list[RunSpec]":
    """The specs that a command line asks for."""
    from msgspec.structs import replace

    from prill import plugins
    from prill.run import expected

    suite = catalog.suite(chosen.suite)
    if chosen.seed is not None and chosen.seeds is not None:
        raise DefinitionError("give --seeds N or --seed S, not both")
    if chosen.seeds is not None and chosen.seeds < 1:
        raise DefinitionError(f"--seeds {chosen.seeds}: at least 1")
    if chosen.sandbox:
        plugins.get("sandboxes", chosen.sandbox)
        suite = replace(suite, sandbox=chosen.sandbox)
    seeds = chosen.seed if chosen.seed is not None else range(chosen.seeds or suite.seeds)
    return expected(catalog, suite, chosen.entrant or suite.entrants, list(seeds))


def plan(chosen: argparse.Namespace) -> int:
    """`prill plan`."""
    from prill.catalog import Catalog
    from prill.run import match, planning

    specs = asked(Catalog(chosen.definitions), chosen)
    for spec in specs:
        tests = "+".join(benchmark.name for benchmark in spec.benchmarks)
        print(f"{spec.entrant.name:<24} {spec.model.name:<20} {tests:<20} seed {spec.seed}  {spec.budget.hours:g} h")
    if not chosen.dry:
        with planning(chosen.runs):
            work = match(specs, chosen.runs)
        print(
            f"{len(specs)} runs: {len(work.todo)} to do in {chosen.runs}, {len(work.done)} done, {len(work.lost)} lost"
        )
    return 0


def stop(chosen: argparse.Namespace) -> int:
    """`prill stop`."""
    from prill.folder import folders
    from prill.solving import attach

    stopped = [folder for parent in chosen.folder for folder in folders(parent) if attach.stop(folder)]
    print("\n".join(f"{folder.path}: stopped" for folder in stopped) or "no agent is at work there")
    return 0


def measure(chosen: argparse.Namespace) -> int:
    """`prill measure`."""
    from prill import by_hand
    from prill.catalog import Catalog
    from prill.folder import RunFolder

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    catalog, folder = Catalog(chosen.definitions), RunFolder(chosen.folder)
    if folder.is_run():
        if chosen.benchmark or chosen.limit or chosen.data:
            raise DefinitionError(f"{folder.path} is a run, whose spec says what is measured; leave such options out")
        made = by_hand.of_run(folder, catalog, say, again=chosen.again)
    else:
        subject, tests, to = by_hand.prepared(
            catalog, chosen.folder, chosen.benchmark, chosen.to,
            engine=chosen.engine, sandbox=chosen.sandbox, limit=chosen.limit, data=chosen.data,
        )  # fmt: skip
        made = by_hand.of_model(subject, tests, to, say)
    print("\n".join(line for record in made for line in by_hand.lines(record)))
    return 0


def standings(chosen: argparse.Namespace) -> "tuple[Board, list[Run]]":
    """A suite's board from the runs that are there."""
    from prill.catalog import Catalog
    from prill.run import board_of

    if chosen.resamples < 0:
        raise DefinitionError(f"--resamples {chosen.resamples}: at least 0 (0: no intervals)")
    return board_of(
        Catalog(chosen.definitions),
        chosen.suite,
        chosen.runs,
        partial=chosen.partial,
        sandbox=chosen.sandbox,
        resamples=chosen.resamples,
        seed=chosen.draw,
    )


def score(chosen: argparse.Namespace) -> int:
    """`prill score`."""
    from prill import tables

    board, runs = standings(chosen)
    if chosen.explain:
        print("\n".join(tree_of(chosen, board, runs)))
    elif chosen.format == "table":
        tables.print_board(board)
    else:
        print({"json": tables.as_json, "csv": tables.as_csv, "md": tables.as_markdown}[chosen.format](board).strip())
    return 0


def tree_of(chosen: argparse.Namespace, board: "Board", runs: "list[Run]") -> list[str]:
    """The derivation of the cells that `--explain` names, one for each seed."""
    from prill.catalog import Catalog
    from prill.errors import oneof
    from prill.folder import RunFolder, list_files
    from prill.scoring.explain import explain

    places = {f"{cell.entrant}/{cell.model}/{cell.benchmark}": row for row in board.standings for cell in row.cells}
    if chosen.explain not in places:
        raise DefinitionError(oneof("cell", chosen.explain, list(places)))
    suite, known = Catalog(chosen.definitions).suite(chosen.suite), {run.spec.id: run for run in runs}
    lines = []
    for cell in places[chosen.explain].cells:
        if f"{cell.entrant}/{cell.model}/{cell.benchmark}" == chosen.explain:
            run = known.get(cell.run or "")
            folder = RunFolder(chosen.runs / cell.run) if run and cell.run else None
            files = list_files(folder.path, skip=("workspace", "submission")) if folder else ()
            lines += explain(suite, board, cell, run, files)
    return lines


def diff(chosen: argparse.Namespace) -> int:
    """`prill diff`."""
    from prill.folder import decode
    from prill.scoring.changes import changes, lines
    from prill.standings import Board

    old, new = (decode(file, Board) for file in (chosen.before, chosen.after))
    print("\n".join(lines(changes(old, new))))
    return 0


def bring(chosen: argparse.Namespace) -> int:
    """`prill import`."""
    from prill import plugins, tables
    from prill.catalog import Catalog
    from prill.folder import write_whole
    from prill.standings import Board

    made = plugins.get("importers", chosen.kind)(chosen.tree, chosen.runs, Catalog(chosen.definitions), chosen.suite)
    text = tables.as_json(made)
    if chosen.to is not None:
        write_whole(chosen.to, text.encode())
    if isinstance(made, Board):
        tables.print_board(made)
    else:
        print("\n".join(tables.import_lines(made)))
    return 0


def show(chosen: argparse.Namespace) -> int:
    """`prill show`."""
    import shutil

    from prill.error_rates import rates
    from prill.folder import RunFolder
    from prill.story import lines, steps_of, tell

    folder = RunFolder(chosen.folder)
    run = folder.read()
    known = {each.judge: rates(each.judge) for each in run.judgements}
    story = tell(run, folder.events(), steps_of(folder.steps()), known)
    print("\n".join(lines(story, min(120, shutil.get_terminal_size((100, 40)).columns))))
    return 0


def publish(chosen: argparse.Namespace) -> int:
    """`prill publish`."""
    from prill.catalog import Catalog
    from prill.folder import folders
    from prill.publish import publish as write_site

    board, _ = standings(chosen)
    suite = Catalog(chosen.definitions).suite(chosen.suite)
    print(write_site(board, folders(chosen.runs), chosen.to, suite) / "index.html")
    return 0


def where(chosen: argparse.Namespace) -> int:
    """`prill where`."""
    from prill import plugins
    from prill.catalog import KINDS, PACKAGE, Catalog

    catalog = Catalog(chosen.definitions)
    rows = [(kind, name, catalog.file(kind, name)) for kind in KINDS for name in catalog.names(kind)]
    rows += [(kind, name, PACKAGE / kind / f"{name}.py") for kind in plugins.KINDS for name in plugins.names(kind)]
    found = [row for row in rows if chosen.name is None or row[1] == chosen.name]
    if not found:
        from prill.errors import oneof

        raise DefinitionError(oneof("definition or plug-in", chosen.name, sorted({row[1] for row in rows})))
    for kind, name, file in found:
        print(f"{kind:<11} {name:<18} {file if file.exists() else 'an installed plug-in'}")
    return 0


def check(chosen: argparse.Namespace) -> int:
    """`prill check`."""
    from prill.check import faults

    found = faults([*chosen.definitions, *chosen.folder])
    for line in found:
        print(f"prill: {line}", file=sys.stderr)
    print("no fault found" if not found else f"{len(found)} faults")
    return 2 if found else 0


COMMANDS = {
    "run": run, "stop": stop, "plan": plan, "measure": measure, "score": score,
    "diff": diff, "import": bring, "show": show, "publish": publish, "where": where, "check": check,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
