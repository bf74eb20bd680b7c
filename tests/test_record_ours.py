"""Our own standings and runs as records: every value from a file, versions that follow, and a site that holds them."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import samples
from prill import cli
from prill.audit.bundle import seal
from prill.audit.making import encoded
from prill.audit.verify import verify
from prill.catalog import Catalog
from prill.compare import compare
from prill.errors import DefinitionError
from prill.folder import RunFolder
from prill.publish import publish
from prill.record import Bought, Run
from prill.records.bundling import bundle
from prill.records.checking import check, faults_of
from prill.records.making import values
from prill.records.ours import APART, by_id, of_run, of_standing
from prill.records.reading import read
from prill.reported import Place, Retraction
from prill.score import board as board_of
from prill.standings import Board, Overview, Spent
from record_made import DAY, sealed_again

GRACE = msgspec.structs.replace(samples.ENTRANT, name="grace", title="Grace", model="hopper-1")
RUNS = [
    samples.run("r1", value=0.5),
    samples.run("r2", seed=1, value=0.25),
    samples.run("r3", entrant=GRACE, value=0.75),
]


def written(parent: Path, run: Run) -> RunFolder:
    """A run folder with these records."""
    folder = RunFolder(parent / run.spec.id, durable=False)
    folder.path.mkdir(parents=True)
    for name, record in (("spec", run.spec), ("outcome", run.outcome), ("submission", run.submission)):
        folder.write(folder.path / f"{name}.json", record)
    for made in run.measurements:
        folder.write(folder.next_numbered("measurements", made.benchmark), made)
    for judgement in run.judgements:
        folder.write(folder.next_numbered("findings", judgement.judge), judgement)
    folder.append("began", "solve")
    folder.append("ended", "solve")
    return folder


def board(runs: list[Run] = RUNS) -> Board:
    """The standings of these runs."""
    return board_of(samples.SUITE, [run.spec for run in runs], runs, digest=samples.DIGEST)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[RunFolder]:
    """The runs on disk."""
    home = tmp_path_factory.mktemp("runs")
    return [written(home, run) for run in RUNS]


def test_a_standing_becomes_a_record_without_typing(folders: list[RunFolder], tmp_path: Path) -> None:
    """Each value of a standing's record is read from a file beside it, its numbers are the board's, and it verifies."""
    record, files = of_standing(board(), samples.SUITE, "ada", by_id(folders), DAY)
    told = {name: one.value for name, one in values(record).items()}
    row = next(row for row in board().standings if row.entrant == "ada")
    assert (told["value"], told["dispersion"], told["dispersion_n"]) == (row.score, row.sd, 2) == (0.375, row.sd, 2)
    assert [told[name] for name in ("cells", "cells_measured", "task_count", "run_count")] == [2, 2, 1, 2]
    assert (told["tests"], told["base_models"], told["wall_clock_hours"]) == (("sums",), ("tiny",), 1)
    assert all(isinstance(one.source, Place) and one.source.source in record.sources for one in values(record).values())
    assert record.sources["run r2"].sha256 == hashlib.sha256((folders[1].path / "spec.json").read_bytes()).hexdigest()
    assert faults_of(record, files) == []
    place = seal(tmp_path / "b", bundle(record, files, ["prill", "record", "new"], f"{DAY}T00:00:00+00:00"))
    assert verify(place).faults == () and check(read(place)) == []


def test_two_rows_of_one_board_are_the_same_kind_of_result(folders: list[RunFolder]) -> None:
    """Two entrants of one suite with equally many seeds may stand side by side; with fewer, nearly."""
    rules = Catalog().comparison("post-training")
    both = [replace(run, spec=replace(run.spec, seed=0)) for run in (RUNS[0], RUNS[2])]
    a, b = (of_standing(board(both), samples.SUITE, name, by_id(folders), DAY)[0] for name in ("ada", "grace"))
    assert compare(a, b, rules).verdict == "same"
    more, _ = of_standing(board(), samples.SUITE, "ada", by_id(folders), DAY)
    found = compare(more, b, rules)
    assert (found.verdict, [one.field for one in found.differences]) == ("near", ["run_count"])


def test_an_entrant_without_runs_has_a_record_that_says_so(folders: list[RunFolder]) -> None:
    """No headline is no value with the board's own reason, and what only runs say is not reported."""
    lone = replace(RUNS[0].spec, entrant=replace(samples.ENTRANT, name="idle"))
    made = board_of(samples.SUITE, [lone], [], digest="")
    record, files = of_standing(made, samples.SUITE, "idle", {}, DAY)
    assert record.fields.value is None and record.not_reported["value"] == made.standings[0].why
    assert record.not_reported["scaffold"] == "no run of this entrant counts"
    assert faults_of(record, files) == [] and values(record)["cells_missing"].value == 1


def test_what_runs_do_not_share_is_not_reported(tmp_path: Path) -> None:
    """A field in which the runs that count differ is not reported, and says so."""
    other = replace(samples.ENTRANT, effort="high")
    runs = [RUNS[0], replace(RUNS[1], spec=replace(RUNS[1].spec, entrant=other))]
    made = [written(tmp_path, run) for run in runs]
    record, _ = of_standing(board(runs), samples.SUITE, "ada", by_id(made), DAY)
    assert record.not_reported["effort"] == "differs between the 2 runs that count"
    assert values(record)["scaffold"].value == "scripted"


@pytest.mark.parametrize(("unknown", "told"), [(0, 1.5), (1, None)])
def test_a_cost_counts_only_where_all_runs_say_theirs(folders: list[RunFolder], unknown: int, told: Any) -> None:
    """The cost is the mean of the overview, and not reported as soon as one run does not say its own."""
    nothing = Spent(mean=None, known=0, unknown=0)
    spent = Overview(
        seconds=nothing, tokens_in=nothing, tokens_out=nothing, usd=Spent(mean=1.5, known=2, unknown=unknown)
    )
    whole = board()
    whole = replace(whole, standings=tuple(replace(row, overview=spent) for row in whole.standings))
    record, _ = of_standing(whole, samples.SUITE, "ada", by_id(folders), DAY)
    cost = record.fields.monetary_cost
    assert (cost.value if cost else None) == told
    assert told is not None or record.not_reported["monetary_cost"] == "1 of 3 runs do not say what they cost"


def test_a_cost_of_several_kinds_is_not_told_as_one(folders: list[RunFolder], tmp_path: Path) -> None:
    """Where a teacher was for sale too, neither a run's nor a row's cost is the model's alone."""
    sold = {"model": Bought(usd="1.5", why=""), "teacher": Bought(usd="2", why="")}
    done = written(tmp_path, replace(RUNS[0], outcome=replace(samples.OUTCOME, usd=1.5, bought=sold)))
    record, _ = of_run(done, None, DAY)
    known = Spent(mean=1.5, known=2, unknown=0)
    spent = Overview(seconds=known, tokens_in=known, tokens_out=known, usd=known, bought={"teacher": known})
    whole = board()
    whole = replace(whole, standings=tuple(replace(row, overview=spent) for row in whole.standings))
    row, _ = of_standing(whole, samples.SUITE, "ada", by_id(folders), DAY)
    assert row.not_reported["monetary_cost"] == record.not_reported["monetary_cost"] == APART


def test_one_run_becomes_a_record(folders: list[RunFolder], tmp_path: Path) -> None:
    """A run's record holds its newest measurement, its spec's decisions and what prill says of itself; it verifies."""
    record, files = of_run(folders[2], None, DAY)
    told = {name: one.value for name, one in values(record).items()}
    assert (told["value"], told["dispersion"], told["model"], told["benchmark_version"]) == (
        0.75,
        0.1,
        "hopper-1",
        "sums",
    )
    place = seal(tmp_path / "b", bundle(record, files, ["prill", "record", "new"], f"{DAY}T00:00:00+00:00"))
    assert verify(place).faults == () and check(read(place)) == []
    with pytest.raises(DefinitionError, match="benchmark of this run"):
        of_run(folders[2], "history", DAY)


def test_a_run_that_was_not_measured_says_so(tmp_path: Path) -> None:
    """Without a measurement there is no value, with the reason; nothing becomes zero."""
    record, files = of_run(written(tmp_path, replace(RUNS[0], measurements=())), None, DAY)
    assert record.fields.value is None and record.not_reported["value"] == "nothing was measured in this run"
    assert faults_of(record, files) == []


def test_a_row_with_other_numbers_is_caught(folders: list[RunFolder], tmp_path: Path) -> None:
    """A changed count of cells contradicts the file that it was counted in, whoever made the digests anew."""
    record, files = of_standing(board(), samples.SUITE, "ada", by_id(folders), DAY)
    place = seal(tmp_path / "b", bundle(record, files, [], DAY))
    text = (place / "record.json").read_text()
    (place / "record.json").write_text(
        text.replace('"cells_measured": {\n   "value": 2', '"cells_measured": {\n   "value": 3')
    )
    assert text != (place / "record.json").read_text()
    sealed_again(place)
    assert "WRONG" in {fault.code for fault in verify(place).faults}
    assert {("WRONG", "cells_measured"), ("SUM", "cells")} == {
        (fault.code, fault.where) for fault in check(read(place))
    }


# --- versions ---------------------------------------------------------------------------------------------------


def test_a_record_stays_until_something_differs(folders: list[RunFolder]) -> None:
    """Made again from the same files it is the same version; another number is the next, with the earlier's digest."""
    first, _ = of_standing(board(), samples.SUITE, "ada", by_id(folders), DAY)
    again, _ = of_standing(board(), samples.SUITE, "ada", by_id(folders), "2026-12-24", first)
    assert again == first
    fewer = [RUNS[0], RUNS[2]]
    later, _ = of_standing(board(fewer), samples.SUITE, "ada", by_id(folders), "2026-12-24", first)
    assert (later.id, later.version, later.made) == (first.id, 2, "2026-12-24")
    assert later.supersedes and later.supersedes.sha256 == hashlib.sha256(encoded(first)).hexdigest()


def test_only_a_person_takes_a_retraction_back(folders: list[RunFolder]) -> None:
    """A retracted record that is made again from new runs stays retracted."""
    first, _ = of_standing(board(), samples.SUITE, "ada", by_id(folders), DAY)
    gone = replace(first, retracted=Retraction(date=DAY, why="miscounted"))
    later, _ = of_standing(board([RUNS[0]]), samples.SUITE, "ada", by_id(folders), DAY, gone)
    assert later.version == 2 and later.retracted == gone.retracted


# --- the site ----------------------------------------------------------------------------------------------------


def test_a_site_has_a_record_for_each_standing(folders: list[RunFolder], tmp_path: Path) -> None:
    """Publishing writes a record that verifies for each row and links it; again, nothing changes but what differs."""
    site = publish(board(), folders, tmp_path / "site", samples.SUITE)
    for row in board().standings:
        assert f'href="records/{row.entrant}/index.html"' in (site / "index.html").read_text()
        assert verify(site / "records" / row.entrant).faults == ()
    before = (site / "records/ada/record.json").read_bytes()
    publish(board(), folders, site, samples.SUITE)
    assert (site / "records/ada/record.json").read_bytes() == before
    publish(board([RUNS[0], RUNS[2]]), folders, site, samples.SUITE)
    assert read(site / "records/ada").record.version == 2
    assert verify(site / "records/ada").faults == ()


def test_no_secret_goes_along(tmp_path: Path) -> None:
    """A key that stands in a run's files is not in the record's sources."""
    key = "sk-ant-api03-" + "a1B2" * 20
    spec = replace(RUNS[0].spec, prompt=replace(samples.PROMPT, template=f"use {key}"))
    run = replace(RUNS[0], spec=spec)
    site = publish(board([run]), [written(tmp_path / "runs", run)], tmp_path / "site", samples.SUITE)
    texts = [file.read_text() for file in (site / "records").rglob("*") if file.is_file()]
    assert texts and not any(key in text for text in texts)
    assert verify(site / "records/ada").faults == ()


def test_the_commands_for_our_own(folders: list[RunFolder], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--from-run` writes a bundle that verifies; `--from-standings` names entrants that there are."""
    target = tmp_path / "run"
    assert cli.main(["record", "new", "--from-run", str(folders[0].path), "--to", str(target)]) == 0
    assert cli.main(["verify", str(target)]) == 0
    smoke = ["record", "new", "--from-standings", "smoke", "--runs", str(folders[0].path.parent)]
    assert cli.main([*smoke, "--entrant", "base-only", "--to", str(tmp_path / "s")]) == 0
    assert cli.main(["verify", str(tmp_path / "s")]) == 0
    assert cli.main([*smoke, "--entrant", "nobody", "--to", str(tmp_path / "n")]) == 2
    assert "honest-sft" in capsys.readouterr().err
