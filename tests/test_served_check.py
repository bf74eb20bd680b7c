"""A whole self-check against real servers that answer well or badly, in a box."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from prill.catalog import Catalog
from prill.errors import InfraError
from prill.gates import SelfCheck
from prill.sandboxes import bubblewrap
from prill.selfcheck import Wanted, check
from prill.sockets import Need

try:
    with bubblewrap.plugin.open(Need()):
        NO_BOX = ""
except InfraError as error:
    NO_BOX = str(error)

needs_box = pytest.mark.skipif(bool(NO_BOX), reason=NO_BOX)
ITEMS = 6
READY = {"text": "ready", "times": 1}
"""The first reply goes to whoever waits for the server."""


def checked(folder: Path, *replies: dict[str, Any], seconds: float = 2.0, served: bool = True) -> SelfCheck:
    """The check of a folder whose server plays these replies."""
    catalog = Catalog()
    benchmark = replace(catalog.benchmark("word-problems"), request_seconds=seconds)
    package, scratch = folder / "package", folder / "scratch"
    package.mkdir()
    scratch.mkdir()
    (package / "canned.json").write_text(json.dumps({"replies": list(replies)}))
    wanted = Wanted(catalog.model("smoke-base"), (benchmark,), "canned", "bubblewrap", ITEMS if served else 0)
    return check(package, wanted, catalog, scratch)


def states(made: SelfCheck) -> dict[str, str]:
    """Each gate's colour."""
    return {gate.name: gate.state for gate in made.gates}


@needs_box
def test_replies_that_are_all_cut_off_fail_though_each_is_well_formed(tmp_path: Path) -> None:
    """Every request is answered, every reply is cut off: the gates of form are green and the prediction is red."""
    made = checked(tmp_path, READY, {"text": "and then " * 200, "finish": "length"})
    found = states(made)
    assert found["answered"] == found["healthy_after"] == found["startup"] == "green"
    assert (found["concurrent"], found["graded_request"], found["zero_share"]) == ("amber", "amber", "red")
    assert made.zero.count == made.zero.of == ITEMS
    assert made.zero.low is not None and 0.5 < made.zero.low < 1
    assert made.shares["cut off"].count == made.shares["repetitive"].count == ITEMS
    assert made.status == "failed"


@needs_box
def test_a_server_that_dies_under_load_is_not_healthy_after(tmp_path: Path) -> None:
    """A server that breaks after its first replies fails the gates behind them, and the words say why."""
    made = checked(tmp_path, READY, {"text": "#### 1", "times": 2}, {"do": "500", "text": "engine is dead "})
    found, words = states(made), {gate.name: gate.why for gate in made.gates}
    assert found["startup"] == "green"
    assert found["answered"] == found["healthy_after"] == "red"
    assert "500" in words["answered"]
    assert found["zero_share"] == found["readable"] == "not run"
    assert made.passed == sum(state in ("green", "amber") for state in found.values())


@needs_box
def test_a_server_that_only_hangs_never_starts(tmp_path: Path) -> None:
    """Without one finished generation nothing is started, and no later gate counts as passed."""
    made = checked(tmp_path, {"do": "400", "text": "no such model"})
    found = states(made)
    assert found.pop("package") == found.pop("contract") == "green"
    assert found.pop("startup") == "red"
    assert set(found.values()) == {"not run"}
    assert made.status == "failed"


@needs_box
def test_late_and_foreign_replies_are_counted_once_each(tmp_path: Path) -> None:
    """One reply over time scores nothing, one in another script is told apart, and the rest are read."""
    thai = {"text": "คำตอบคือสิบสอง " * 3 + "#### 12", "times": 1, "if": "?"}
    made = checked(
        tmp_path, READY, {"text": "#### 7", "times": 1}, thai, {"do": "hang", "times": 1}, {"text": "#### 5"}
    )
    assert made.shares["over time"].count == made.zero.count == 1
    assert made.shares["in another script"].count == 1
    assert made.score.of == ITEMS
    assert made.asked[0].item.startswith("word-problems/")


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    """A link in the package is refused by name and what it leads to is in no list of files."""
    (tmp_path / "package").mkdir()
    (tmp_path / "secret").write_text("not yours")
    (tmp_path / "package" / "config.json").symlink_to(tmp_path / "secret")
    (tmp_path / "package" / "deeper").symlink_to(tmp_path)
    command = [sys.executable, "-m", "prill.cli", "selfcheck", str(tmp_path / "package"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    told = json.loads(done.stdout)
    assert done.returncode == 3
    assert told["status"] == "failed" and told["files"] == []
    assert set(told["gates"][0]["numbers"]["codes"]) == {"NOT_A_FILE", "NOTHING_THERE"}


def test_what_cannot_be_checked_is_an_error_of_one_line(tmp_path: Path) -> None:
    """A folder that is not there and a model that the suite does not have are refused, with what is allowed."""
    for words, told in (
        ([str(tmp_path / "none")], "no such folder"),
        ([str(tmp_path), "--suite", "smoke", "--model", "other"], "smoke-base"),
        ([str(tmp_path), "--limit", "-1"], "at least 0"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "prill.cli", "selfcheck", *words], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert told in done.stderr
