"""What an inventory says of a tree: the published counts from a listing, the same from any form of the same tree."""

import hashlib
import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import audit_seed as seed
from prill.audit import inventory as counting
from prill.audit import listing
from prill.audit.derive import Calculator, Derivations, same
from prill.audit.inventory import Names, Tally, inventory
from prill.audit.making import inventory_of, plain
from prill.audit.pointers import resolve
from prill.catalog import Catalog
from prill.errors import DefinitionError
from prill.evidence import Inventory, Listing
from prill.folder import list_files, tree_digest

NAMING = Catalog().naming("posttrainbench")
ABOUT = Listing(kind="listing", name="made", form="paths", below="", sha256=None)
CELL = "gsm8k_Qwen_Qwen3-4B-Base"
TREE = {
    "claude_opus_10h_run1": [f"{CELL}_9/metrics.json", f"{CELL}_9/task/a.py", f"{CELL}_10/metrics.json", "notes.txt"],
    "codex_gpt-5_xhigh_1h_8gpu": ["bfcl_google_gemma-3-4b-pt_7/x.txt", "aime2026_Qwen_Qwen3-4B-Base_3/x", "junk/y"],
    "viewer_data": ["a.json", "deep/b.json"],
    "_old_10h": [f"{CELL}_1/x"],
}


def counted(paths: Iterable[str], below: str = "") -> Inventory:
    """The inventory of these paths."""
    tally = Tally(Names(NAMING), below)
    tally.feed((path, None, None) for path in paths)
    return inventory(tally, ABOUT, "none")


def from_place(place: Path, *, below: str = "", hashing: bool = False) -> Inventory:
    """The inventory of a folder, listing or archive."""
    source = listing.source_of(place)
    about = Listing(kind=source.kind, name="x", form=source.form, below=below, sha256=None)
    return inventory_of(source, NAMING, "none", about, hashing=hashing)


def paths_of(tree: dict[str, list[str]]) -> list[str]:
    """The files of a small tree."""
    return [f"{root}/{path}" for root, paths in tree.items() for path in paths]


def planted(place: Path, tree: dict[str, list[str]]) -> Path:
    """A small tree on disk."""
    for path in paths_of(tree):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(path, encoding="utf-8")
    return place


def test_the_published_counts_come_out_of_a_listing(tmp_path: Path) -> None:
    """A listing with the page's cell counts gives its 47, 1,338, 1,313, 25 and 3, and its whole matrix."""
    (tmp_path / "listing").write_text("\n".join(seed.listing()), encoding="utf-8")
    found = from_place(tmp_path / "listing")
    counts = found.counts
    assert (counts.benchmarks, counts.models, counts.roots, counts.tasks) == (7, 4, 47, 1338)
    assert (counts.pairs, counts.expected_pairs, counts.surplus, counts.several) == (1313, 1316, 25, 25)
    assert (counts.missing, counts.nested, counts.unaccepted) == (3, 0, 0)
    assert found.cell_counts == seed.CELLS
    [viewer] = found.auxiliary
    assert (viewer.path, viewer.files, viewer.directories, viewer.counted_as_root) == ("viewer_data", 2397, 1, False)
    assert len(found.tasks) == 1338 and len(found.missing) == 3 and len(found.several) == 25
    assert sum(task.files for task in found.tasks) == 3 * 1338


def test_every_number_follows_from_the_lists_beside_it() -> None:
    """Each derivation of an inventory, and each second way to the same number, gives the number that stands there."""
    found = counted(seed.listing())
    derived, observed = counting.derivations(found, "c.json", "provenance.json#/inputs/listing")
    derived += counting.cross_checks(found, "c.json")
    documents = {"c.json": plain(found), "provenance.json": {"inputs": {"listing": {"sha256": "0"}}}}
    calculator = Calculator(documents, Derivations(derived=tuple(derived), observed=tuple(observed)))
    assert len(derived) > 80
    for entry in derived:
        assert same(resolve(documents, entry.value), calculator.evaluate(entry)), entry
        assert calculator.ground(entry.value) == "derived"


def test_names_say_what_they_are_made_of() -> None:
    """A root's agent is the longest known one, and hours, GPUs and experiment are read; ids are compared as numbers."""
    found = counted(paths_of(TREE))
    roots = {root.name: (root.agent, root.config, root.hours, root.gpus, root.experiment) for root in found.roots}
    assert roots["claude_opus_10h_run1"] == ("claude", "opus", 10, 1, "_run1")
    assert roots["codex_gpt-5_xhigh_1h_8gpu"] == ("codex", "gpt-5_xhigh", 1, 8, "")
    [several] = found.several
    assert several.folders == (f"claude_opus_10h_run1/{CELL}_9", f"claude_opus_10h_run1/{CELL}_10")
    assert several.latest.endswith("_10")
    non_api = counted([f"claude_non_api_claude-opus-4-6_1m__50h_run1/{CELL}_1/x"]).roots[0]
    assert (non_api.agent, non_api.config) == ("claude_non_api", "claude-opus-4-6_1m_")


def test_what_is_left_out_is_told_with_why() -> None:
    """Auxiliary folders, names that are skipped, tasks of unknown benchmarks and other folders each stand in a list."""
    found = counted(paths_of(TREE))
    assert {one.path: (one.files, one.directories) for one in found.auxiliary} == {
        "_old_10h": (1, 2),
        "viewer_data": (2, 2),
    }
    assert "skips names" in next(one.why for one in found.auxiliary if one.path == "_old_10h")
    left = {one.path.rpartition("/")[2]: one.why for one in found.unaccepted}
    assert "aime2026" in left["aime2026_Qwen_Qwen3-4B-Base_3"] and left["junk"] == "not named like a task"
    assert found.counts.tasks == 3


def test_nested_tasks_are_excluded_and_listed() -> None:
    """A task's folder inside another task, or below a folder of its root, is no task of the root."""
    root = "claude_opus_10h_run1"
    found = counted([f"{root}/{CELL}_9/task/{CELL}_10/x", f"{root}/group/{CELL}_11/a/b", f"{root}/{CELL}_9/y"])
    assert {one.path: one.why for one in found.nested} == {
        f"{root}/{CELL}_9/task/{CELL}_10": "a task's name inside another task",
        f"{root}/group/{CELL}_11": "a task's name not directly in its root",
    }
    assert (found.counts.tasks, found.counts.nested) == (1, 2)


def test_a_name_without_anything_below_is_not_counted() -> None:
    """A line named like a task with nothing below is listed as bare; an entry with a slash is a folder."""
    root = "claude_opus_10h_run1"
    bare = counted([f"{root}/{CELL}_9", f"{root}/{CELL}_10", f"{root}/{CELL}_10/metrics.json"])
    assert (bare.bare, bare.counts.tasks) == ((f"{root}/{CELL}_9",), 1)
    folder = counted([f"{root}/{CELL}_9/"])
    assert (folder.bare, folder.counts.tasks, folder.counts.paths) == ((), 1, 0)


FORMS: dict[str, Callable[[Path], bytes]] = {
    "paths": lambda top: b"".join(b"%s\n" % p.encode() for p in files(top)),
    "windows": lambda top: b"".join(b"%s\r\n" % p.encode() for p in files(top)),
    "dots": lambda top: b"".join(b"./%s\n" % p.encode() for p in files(top)),
    "nuls": lambda top: b"".join(b"%s\0" % p.encode() for p in files(top)),
    "sizes": lambda top: b"".join(b"%s\t%d\n" % (p.encode(), (top / p).stat().st_size) for p in files(top)),
    "digests": lambda top: b"".join(b"%s\t\t%s\n" % (p.encode(), digest(top / p)) for p in files(top)),
    "sha256sum": lambda top: b"".join(b"%s  %s\n" % (digest(top / p), p.encode()) for p in files(top)),
}


def files(top: Path) -> list[str]:
    """Paths of all files below a folder, sorted."""
    return sorted(file.relative_to(top).as_posix() for file in top.rglob("*") if file.is_file())


def digest(file: Path) -> bytes:
    """Hex SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest().encode()


def gist(found: Inventory) -> object:
    """An inventory without how it was read."""
    return found.counts, found.cell_counts, [(task.path, task.files) for task in found.tasks], found.auxiliary


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_listing_gives_the_same(tmp_path: Path, form: str) -> None:
    """Paths alone, with sizes or digests, by sha256sum, with NULs, dots or carriage returns count the same."""
    top = planted(tmp_path / "tree", TREE)
    (tmp_path / "listing").write_bytes(FORMS[form](top))
    found = from_place(tmp_path / "listing")
    assert gist(found) == gist(from_place(top)) and not found.faults
    sized = form == "sizes"
    assert all((task.bytes is not None) == sized for task in found.tasks)
    assert all((task.sha256 is not None) == (form in ("digests", "sha256sum")) for task in found.tasks)


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "tar.xz"])
def test_an_archive_s_index_gives_the_same(tmp_path: Path, kind: str) -> None:
    """Of a zip or tar archive only the index is read; it counts like the folder, below the archive's own top folder."""
    top = planted(tmp_path / "release", TREE)
    place = tmp_path / f"made.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(place, "w") as archive:
            for path in files(top):
                archive.write(top / path, f"release/{path}")
    else:
        with tarfile.open(place, f"w:{kind.partition('.')[2]}" if "." in kind else "w") as archive:
            archive.add(top, "release")
    assert gist(from_place(place, below="release")) == gist(from_place(top))
    assert from_place(place, below="release").tasks[0].bytes is not None


def test_files_are_hashed_only_where_they_are(tmp_path: Path) -> None:
    """A folder's tasks have digests if asked for, equal to the digest over their sorted files; a listing has none."""
    top = planted(tmp_path / "tree", TREE)
    task = next(task for task in from_place(top, hashing=True).tasks if task.path.endswith("_9"))
    own = list_files(top / task.path)
    lines = "".join(f"{file.sha256}  {task.path}/{file.path}\n" for file in own)
    assert task.sha256 == hashlib.sha256(lines.encode()).hexdigest() != tree_digest(own)
    assert all(task.sha256 is None for task in from_place(top).tasks)


def test_links_and_devices_of_a_folder_are_faults(tmp_path: Path) -> None:
    """A link, even one that leads out or in a circle, is not followed and stands among the faults."""
    import os

    top = planted(tmp_path / "tree", TREE)
    (top / "claude_opus_10h_run1" / "loop").symlink_to(top)
    os.mkfifo(top / "claude_opus_10h_run1" / "pipe")
    found = from_place(top)
    assert len([fault for fault in found.faults if "link or a device" in fault]) == 2
    assert found.counts.tasks == 3


def test_paths_that_climb_count_nothing() -> None:
    """Absolute paths, paths with `..` and with empty parts are faults, and their files belong to nobody."""
    root = "claude_opus_10h_run1"
    found = counted(
        [f"/{root}/{CELL}_1/x", f"{root}/../{root}/{CELL}_2/x", f"{root}//{CELL}_3/x", f"{root}/{CELL}_4/a/../x"]
    )
    assert found.counts.tasks == 0 and len(found.faults) == 4
    deep = counted([f"{root}/{CELL}_4/x/y/z", f"{root}/{CELL}_4/x/../../../q"])
    assert (deep.counts.tasks, deep.tasks[0].files, len(deep.faults)) == (1, 1, 1)


def test_lines_of_another_form_are_faults(tmp_path: Path) -> None:
    """A line that is not of the form of the first one is told and not counted."""
    (tmp_path / "listing").write_text(f"a_1h/{CELL}_1/x\t5\na_1h/{CELL}_2/x\na_1h/{CELL}_3/x\tbig\n", encoding="utf-8")
    found = from_place(tmp_path / "listing")
    assert (found.counts.tasks, len(found.faults), found.tasks[0].bytes) == (1, 2, 5)


def test_what_is_no_listing_is_refused(tmp_path: Path) -> None:
    """A line without end, a broken archive and a place that is not there are errors that say what to give."""
    (tmp_path / "blob").write_bytes(b"x" * 3_000_000)
    with pytest.raises(DefinitionError, match="is this a listing"):
        from_place(tmp_path / "blob")
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        archive.add(planted(tmp_path / "tree", TREE), "t")
    (tmp_path / "cut.tgz").write_bytes(whole.getvalue()[:-40])
    with pytest.raises(DefinitionError, match="to its end"):
        from_place(tmp_path / "cut.tgz")
    (tmp_path / "head.tgz").write_bytes(b"\x1f\x8b\x08")
    with pytest.raises(DefinitionError, match="not a tar archive that can be read to its end"):
        from_place(tmp_path / "head.tgz")
    with pytest.raises(DefinitionError, match="no such file"):
        from_place(tmp_path / "nowhere")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_archive_breaks_the_reading(data: st.DataObject) -> None:
    """An archive with bytes changed or cut is counted as far as it goes or refused in one sentence."""
    whole = bytearray(data.draw(st.sampled_from(ARCHIVES)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with NamedTemporaryFile() as file:
        file.write(whole[: data.draw(st.integers(1, len(whole)))])
        file.flush()
        with suppress(DefinitionError):
            assert from_place(Path(file.name)).counts.tasks <= 10  # entries; a changed byte may make another name


def packed(kind: str) -> bytes:
    """A small tree as an archive."""
    made = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(made, "w") as archive:
            for path in paths_of(TREE):
                archive.writestr(path, "x" * 40)
    else:
        with tarfile.open(fileobj=made, mode=kind) as tar:
            for path in paths_of(TREE):
                member = tarfile.TarInfo(path if kind != "w:gz" else f"{path}{'y' * 120}")
                member.size = 40
                tar.addfile(member, io.BytesIO(b"x" * 40))
    return made.getvalue()


ARCHIVES = [packed(kind) for kind in ("zip", "w", "w:gz", "w:xz", "w:bz2")]


def test_a_header_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    """A tar header that announces a name of gigabytes is refused before anything is read for it."""
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4_000_000_000
    (tmp_path / "made.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    with pytest.raises(DefinitionError, match="a header of 4,000,000,000 bytes"):
        from_place(tmp_path / "made.tar")


def test_order_does_not_count() -> None:
    """A shuffled listing gives the same inventory, even while the memory of folders is tiny."""
    paths = list(seed.listing())[::7] + paths_of(TREE)
    plain_order = counted(paths)
    random.Random(5).shuffle(paths)
    assert counted(paths) == plain_order


def test_memory_of_folders_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many folders a tree has, only so many are remembered, and directories beyond that are not known."""
    monkeypatch.setattr(counting, "REMEMBERED", 50)
    tally = Tally(Names(NAMING))
    tally.feed((f"viewer_data/{n}/x", None, None) for n in range(500))
    tally.feed((f"claude_opus_10h_run1/{CELL}_1/{n}/x", None, None) for n in range(500))
    found = inventory(tally, ABOUT, "none")
    assert len(tally.known) <= 51 and found.auxiliary[0].directories is None
    assert (found.auxiliary[0].files, found.tasks[0].files) == (500, 500)


def test_too_many_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing with more top-level folders than any tree of runs has is refused, not held."""
    monkeypatch.setattr(counting, "MOST", 100)
    with pytest.raises(DefinitionError, match="not a tree of runs"):
        counted(f"top{n}/x" for n in range(200))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab_/.1h\t\u202e\x00"), max_size=30) | st.sampled_from(paths_of(TREE))))
def test_no_listing_breaks_the_count(paths: list[str]) -> None:
    """Whatever stands in a listing, every path is counted once and the numbers agree with each other."""
    found = counted(path for path in paths if path)
    assert found.counts.tasks == len(found.tasks) == sum(sum(row) for row in found.cell_counts.values())
    assert found.counts.paths == sum(not path.endswith("/") for path in paths if path)
    assert found.counts.pairs + found.counts.missing == found.counts.expected_pairs
