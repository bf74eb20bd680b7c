"""`prill record …` and `prill compare`: results as records with their sources, and which may stand side by side."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command
from prill.errors import DefinitionError

if TYPE_CHECKING:
    from prill.records.reading import Kept
    from prill.reported import ResultRecord

RECORD = """A record is one reported result with its setup: each field a value with the place that it comes from, or
listed as not reported with the reason. It is a folder that opens from disk and that `prill verify` checks.

  prill record new mine.toml --to RECORD                        what a page reports, read by a person
  prill record new --from-standings SUITE --entrant NAME --to RECORD     one of our standings, nothing typed
  prill record new --from-run FOLDER --to RECORD                one run
  prill record check RECORD · show RECORD · export RECORD --as in-toto --to FILE
  prill compare RECORD_A RECORD_B"""

NEW = """Give a TOML file (docs/reference/records.md has its form), or --from-standings with --entrant, or --from-run.
--supersedes RECORD makes it the next version of one that is there: same id, and the digest of the earlier one."""

RETRACT = "Nothing is changed in place: another version is written that says why, and still verifies."

EXPORT = """every-eval-ever (JSON), hf-eval-results (YAML for a model repository; needs --dataset and --task), in-toto
(a Statement about the record) or ro-crate (a folder). What the target has no place for is listed, to standard error."""

IMPORT = """From a file (or, for ro-crate, a folder) of that convention, ours or anybody's. A field that it does not
say is not reported, with that reason."""

COMPARE = """Same, near or not comparable, by the rules of a definition (`prill where post-training`): which fields must
agree, and what follows where they do not, or where one is not reported. The exit code is 0 whatever the verdict."""

TARGETS = ("every-eval-ever", "hf-eval-results", "in-toto", "ro-crate")


def add(commands: Any) -> None:
    """The commands about records."""
    record = command(commands, "record", "Make, check, show and exchange records of results", RECORD)
    inner = record.add_subparsers(dest="part", metavar="PART", required=True)
    one = made(inner, "new", "Make a record with its sources and its page", NEW, new)
    one.add_argument(
        "template", nargs="?", type=Path, metavar="TOML", help="a file in which a person says what is reported"
    )
    one.add_argument("--from-standings", metavar="SUITE", help="of our own standings")
    one.add_argument("--entrant", metavar="NAME", help="whose row")
    one.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="run folders (default: runs)")
    one.add_argument("--sandbox", metavar="NAME", help="another sandbox than the suite's, as for `prill score`")
    one.add_argument("--from-run", type=Path, metavar="FOLDER", help="of one run")
    one.add_argument("--benchmark", metavar="NAME", help="which of the run's benchmarks, where it has several")
    one.add_argument("--supersedes", type=Path, metavar="RECORD", help="the version whose place it takes")
    target(one)
    one = made(inner, "check", "Hold a record against its schema, its own sums and its sources", "", check)
    one.add_argument("record", type=Path, metavar="RECORD")
    one = made(inner, "show", "Print a record, or the JSON Schema of records", "", show)
    one.add_argument("record", nargs="?", type=Path, metavar="RECORD", help="not needed for --format schema")
    one.add_argument("--format", choices=("text", "json", "schema"), default="text", help="default: text")
    one = made(inner, "retract", "Write a version that says why a record is no longer stood by", RETRACT, retract)
    one.add_argument("record", type=Path, metavar="RECORD")
    one.add_argument("--why", required=True, metavar="TEXT", help="the reason")
    target(one)
    one = made(
        inner, "export", "Write a record in another convention, and list what has no place there", EXPORT, export
    )
    one.add_argument("record", type=Path, metavar="RECORD")
    one.add_argument("--as", dest="form", choices=TARGETS, required=True, help="the convention")
    one.add_argument("--dataset", metavar="ID", help="hf-eval-results: the benchmark's data set on the hub")
    one.add_argument("--task", metavar="ID", help="hf-eval-results: the task of that data set")
    one.add_argument("--to", type=Path, required=True, metavar="PLACE", help="a file; for ro-crate a new folder")
    one = made(inner, "import", "Make a record from a file in another convention", IMPORT, bring)
    one.add_argument("place", type=Path, metavar="PLACE")
    one.add_argument("--from", dest="form", choices=TARGETS, required=True, help="the convention")
    target(one)
    one = command(commands, "compare", "Say whether two results may stand side by side, and what differs", COMPARE)
    one.add_argument("a", type=Path, metavar="RECORD_A")
    one.add_argument("b", type=Path, metavar="RECORD_B")
    one.add_argument("--by", default="post-training", metavar="NAME", help="the rules (default: post-training)")
    one.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    one.set_defaults(do=comparing)


def made(inner: Any, name: str, does: str, more: str, do: Any) -> argparse.ArgumentParser:
    """One command of the family."""
    one = command(inner, name, does, more)
    one.set_defaults(do=do)
    return one


def target(one: argparse.ArgumentParser) -> None:
    """Where a record's bundle goes."""
    one.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="a folder that is not there yet")
    one.add_argument("--key", type=Path, metavar="PEM", help="sign with this ed25519 key (default: not signed)")


# --- what they do -------------------------------------------------------------------------------------------


def today() -> str:
    """The day, in UTC."""
    from prill.audit.assembly import now

    return now()[:10]


def new(chosen: argparse.Namespace) -> int:
    """`prill record new`."""
    from prill.records.bundling import follow
    from prill.records.reading import read

    ways = [way for way in (chosen.template, chosen.from_standings, chosen.from_run) if way is not None]
    if len(ways) != 1:
        raise DefinitionError("give one of: a TOML file, --from-standings SUITE with --entrant NAME, --from-run FOLDER")
    template = None
    if chosen.template is not None:
        from prill.records.written import of_template

        record, files, data = of_template(chosen.template, today())
        template = (chosen.template.name, data)
    elif chosen.from_run is not None:
        from prill.folder import RunFolder
        from prill.records.ours import of_run

        record, files = of_run(RunFolder(chosen.from_run), chosen.benchmark, today())
    else:
        record, files = standing(chosen)
    if chosen.supersedes is not None:
        record = follow(read(chosen.supersedes), record)
    return write(chosen, record, files, template)


def standing(chosen: argparse.Namespace) -> "tuple[ResultRecord, dict[str, bytes]]":
    """A record of one of our standings."""
    from prill.catalog import Catalog
    from prill.folder import folders
    from prill.records.ours import by_id, of_standing
    from prill.run import board_of

    if chosen.entrant is None:
        raise DefinitionError("--from-standings needs --entrant NAME; `prill score SUITE` lists them")
    catalog = Catalog(chosen.definitions)
    board, _ = board_of(catalog, chosen.from_standings, chosen.runs, partial=False, sandbox=chosen.sandbox)
    suite = catalog.suite(chosen.from_standings)
    return of_standing(board, suite, chosen.entrant, by_id(folders(chosen.runs)), today())


def write(
    chosen: argparse.Namespace,
    record: "ResultRecord",
    files: dict[str, bytes],
    template: tuple[str, bytes] | None = None,
) -> int:
    """A record's bundle, once nothing is wrong with it."""
    from prill.audit.assembly import now
    from prill.audit.bundle import seal
    from prill.records import shown
    from prill.records.bundling import bundle
    from prill.records.checking import faults_of

    found = faults_of(record, files)
    if found:
        raise DefinitionError("not a record yet: " + "; ".join(shown.of_faults(found)))
    folder = seal(chosen.to, bundle(record, files, ["prill", *sys.argv[1:]], now(), template), chosen.key)
    print(folder / "index.html")
    return 0


def check(chosen: argparse.Namespace) -> int:
    """`prill record check`."""
    from prill.records import shown
    from prill.records.checking import check as faults
    from prill.records.reading import read

    kept = read(chosen.record)
    found = faults(kept)
    print("\n".join(shown.of_faults(found)) if found else "no fault found" + note(kept))
    return 1 if found else 0


def note(kept: "Kept") -> str:
    """What goes before everything else about a record."""
    return f"; retracted {kept.record.retracted.date}: {kept.record.retracted.why}" if kept.record.retracted else ""


def show(chosen: argparse.Namespace) -> int:
    """`prill record show`."""
    import msgspec

    from prill.audit.making import encoded
    from prill.records import shown
    from prill.records.reading import read
    from prill.reported import ResultRecord

    if chosen.format == "schema":
        print(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(ResultRecord)), indent=1).decode())
        return 0
    if chosen.record is None:
        raise DefinitionError("give a record: its folder, or its record.json")
    kept = read(chosen.record)
    if chosen.format == "json":
        print(encoded(kept.record).decode(), end="")
    else:
        print("\n".join(shown.of_record(kept.record)))
    return 0


def retract(chosen: argparse.Namespace) -> int:
    """`prill record retract`."""
    from prill.records.bundling import retract as write_again

    made = write_again(chosen.record, chosen.why, today(), chosen.to, ["prill", *sys.argv[1:]], chosen.key)
    print(made / "index.html")
    return 0


def export(chosen: argparse.Namespace) -> int:
    """`prill record export`."""
    from prill.folder import write_whole
    from prill.records import exchange, shown
    from prill.records.checking import check as faults
    from prill.records.reading import beside, read

    kept = read(chosen.record)
    files, _, _ = beside(kept)
    if found := faults(kept):
        raise DefinitionError(f"{chosen.record}: not fit to be sent: " + "; ".join(shown.of_faults(found)))
    sent = exchange.export(kept.record, chosen.form, files, dataset=chosen.dataset, task=chosen.task)
    if len(sent.files) == 1:
        write_whole(chosen.to, next(iter(sent.files.values())))
    else:
        exchange.into(chosen.to, sent.files)
    for loss in sent.losses:
        print(f"no place for {loss.what}: {loss.why}", file=sys.stderr)
    print(chosen.to)
    return 0


def bring(chosen: argparse.Namespace) -> int:
    """`prill record import`."""
    from prill.records import exchange

    record, files = exchange.bring(chosen.place, chosen.form, today())
    return write(chosen, record, files)


def comparing(chosen: argparse.Namespace) -> int:
    """`prill compare`."""
    from prill.audit.making import encoded
    from prill.catalog import Catalog
    from prill.compare import compare
    from prill.records import shown
    from prill.records.reading import read

    catalog = Catalog(chosen.definitions)
    rules = catalog.comparison(chosen.by)
    digest = catalog.digests[f"comparisons/{chosen.by}"].removeprefix("sha256:")
    found = compare(read(chosen.a).record, read(chosen.b).record, rules, digest)
    print(encoded(found).decode().rstrip() if chosen.format == "json" else "\n".join(shown.of_comparison(found)))
    return 0
