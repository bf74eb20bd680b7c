"""What a merged adapter leaves in the weights, and the commands about model folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from families import BASE, HONEST, INSTRUCT, SHAPES, Tensors, add, draw, save
from prill.checkpoint.ranks import ranks, told
from prill.cli import main

ADAPTED = ("up_proj", "down_proj")


def merge(rank: int, size: float = 0.02) -> Tensors:
    """The base with an adapter of that rank merged into some matrices."""
    beside = draw(5, size, rank=rank)
    return {name: BASE[name] + beside[name] * name.split(".")[-2].endswith(ADAPTED) for name in SHAPES}


@pytest.mark.parametrize("rank", [1, 4, 16])
def test_a_merged_adapter_shows_its_rank_and_place(tmp_path: Path, rank: int) -> None:
    """A merge of rank r leaves r directions, rounding taken out, in the matrices that it was put on and no others."""
    found = ranks(save(tmp_path / "s", merge(rank)), save(tmp_path / "b", BASE))
    changed = {spread.tensor for spread in found.spreads if spread.move}
    assert changed == {name.removeprefix("model.") for name in SHAPES if name.split(".")[-2].endswith(ADAPTED)}
    assert all(0 < spread.rank <= rank for spread in found.spreads if spread.move and spread.rank is not None)
    assert all(spread.rank is not None and spread.rounding < 0.05 for spread in found.spreads if spread.move)
    text = "\n".join(told(found, rank))
    assert f"consistent with a merge of rank {rank}" in text and "8 of 13 matrices changed: down_proj, up_proj" in text


def test_training_of_all_weights_is_no_merge(tmp_path: Path) -> None:
    """A run that changed every direction is not consistent with a claimed rank, and a matrix that shows it is named."""
    found = ranks(save(tmp_path / "s", HONEST), save(tmp_path / "b", BASE))
    assert "not a merge of rank 8: 13 matrices have more" in "\n".join(told(found, 8))


def test_nothing_is_said_of_what_rounding_explains(tmp_path: Path) -> None:
    """The base itself changed nothing, and changes as small as rounding have no rank."""
    base = save(tmp_path / "b", BASE)
    assert next(told(ranks(base, base))) == "0 of 13 matrices changed: none"
    noise = ranks(save(tmp_path / "s", add((1, BASE), (1, draw(3, 5e-5)))), base)
    assert all(spread.rank is None for spread in noise.spreads) and "hardly more than rounding" in " ".join(told(noise))
    broken = save(tmp_path / "x", BASE)
    (broken / "model.safetensors").write_bytes(b"")
    assert next(told(ranks(broken, base))).startswith("cannot be looked at: HEADER_INCOMPLETE")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """The family's models as folders."""
    models = {"base": BASE, "chat": INSTRUCT, "honest": HONEST, "stranger": draw(77, 0.05)}
    return {name: str(save(tmp_path / name, tensors)) for name, tensors in models.items()}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """A command's exit code and what it printed."""
    code = main(list(words))
    return code, capsys.readouterr().out


def test_lineage_is_told_with_figures_and_an_exit_code(folders: dict[str, str], capsys: Any) -> None:
    """`prill checkpoint lineage` prints verdict, figures and margins, and exits with 3 where something was found."""
    known = ("--base", folders["base"], "--instruct", f"chat={folders['chat']}")
    code, text = said(capsys, "checkpoint", "lineage", folders["honest"], *known)
    assert code == 0 and text.startswith("descends from base") and "threshold 0.9, margin +" in text
    code, text = said(capsys, "checkpoint", "lineage", folders["chat"], *known, "--json", "--sampled")
    found = json.loads(text)
    assert (code, found["word"], found["of"]) == (3, "copy of instruct", "chat") and len(found["figures"]["rows"]) == 13
    assert said(capsys, "checkpoint", "lineage", folders["stranger"], *known)[0] == 3


def test_a_fingerprint_is_made_and_used(folders: dict[str, str], tmp_path: Path, capsys: Any) -> None:
    """`prill fingerprint` writes a file whose digest it prints, by which lineage is told without any other model."""
    file = str(tmp_path / "f.safetensors")
    made = ("fingerprint", f"chat={folders['chat']}", "--base", folders["base"], "--to", file)
    code, text = said(capsys, *made, "--control", folders["honest"], "--side", "128")
    assert code == 0 and "2 models" in text and "sha256:" in text
    code, text = said(capsys, "checkpoint", "lineage", folders["chat"], "--fingerprint", file)
    assert code == 3 and text.startswith("copy of instruct: chat")


def test_two_submissions_are_compared(folders: dict[str, str], tmp_path: Path, capsys: Any) -> None:
    """A copy of another submission is named, also after further training, and two runs of their own are not."""
    base = ("--base", folders["base"])
    code, text = said(capsys, "checkpoint", "compare", folders["honest"], folders["honest"], *base)
    assert code == 3 and text.startswith("copy of another submission")
    further = str(save(tmp_path / "further", add((1, HONEST), (1, draw(8, 0.0002)))))
    assert said(capsys, "checkpoint", "compare", further, folders["honest"], *base)[1].startswith("copy of another")
    other = str(save(tmp_path / "other", add((1, BASE), (1, draw(9, 0.004)))))
    assert said(capsys, "checkpoint", "compare", other, folders["honest"], *base)[0] == 0
    mixed = str(save(tmp_path / "mixed", add((0.5, BASE), (0.5, HONEST))))
    assert said(capsys, "checkpoint", "compare", mixed, folders["honest"], *base)[1].startswith("review: holds 0.50")


def test_files_are_audited_by_hand(folders: dict[str, str], capsys: Any) -> None:
    """`prill checkpoint audit` prints each fault with its code, as text or JSON, and exits with 3 for a fatal one."""
    code, text = said(capsys, "checkpoint", "audit", folders["base"], "--model", "smoke-base")
    assert code == 3 and "CONFIG_MISSING" in text
    code, text = said(capsys, "checkpoint", "audit", folders["base"], "--json")
    assert code == 3 and {"CONFIG_MISSING"} <= {fault["code"] for fault in json.loads(text)["faults"]}


@pytest.mark.parametrize(
    "words",
    [
        ["checkpoint", "lineage", "{base}"],
        ["checkpoint", "lineage", "{base}/gone", "--base", "{base}"],
        ["checkpoint", "lineage", "{base}", "--base", "{base}", "--instruct", "{chat}", "--instruct", "{chat}"],
        ["checkpoint", "compare", "{base}", "{base}"],
        ["checkpoint", "ranks", "{base}", "--base", "{base}", "--claimed", "0"],
        ["fingerprint", "--base", "{base}", "--to", "x"],
        ["fingerprint", "{chat}", "--base", "{base}", "--to", "x", "--side", "4"],
        ["fingerprint", "{chat}", "--control", "{chat}", "--base", "{base}", "--to", "x"],
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(folders: dict[str, str], words: list[str], capsys: Any) -> None:
    """A command that lacks its base, names no folder or contradicts itself exits with 2 and one line."""
    assert main([word.format(**folders) for word in words]) == 2
    assert capsys.readouterr().err.startswith("prill: ")


def test_ranks_are_told_on_the_command_line(folders: dict[str, str], capsys: Any) -> None:
    """`prill checkpoint ranks` says how many matrices changed, and gives all figures as JSON."""
    words = ("checkpoint", "ranks", folders["honest"], "--base", folders["base"])
    assert "13 of 13 matrices changed" in said(capsys, *words, "--claimed", "4")[1]
    found = json.loads(said(capsys, *words, "--json")[1])
    assert len(found["spreads"]) == 13 and np.isfinite(found["spreads"][0]["move"])
