"""Copies of folders that somebody else made: what is not a plain file stays out, and what changes meanwhile too."""

import os
import socket
import threading
from pathlib import Path

from prill.copying import DEEPEST, copied


def test_only_regular_files_come_over(tmp_path: Path) -> None:
    """Links, pipes and sockets are refused by name; folders and files come with their bytes."""
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / "inner" / "weights").write_bytes(b"x" * 3_000_000)
    (source / "link").symlink_to("/etc/passwd")
    (source / "folder link").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(source / "socket"))
        faults = copied(source, tmp_path / "target")
    assert [file.name for file in (tmp_path / "target").rglob("*")] == ["inner", "weights"]
    assert (tmp_path / "target" / "inner" / "weights").read_bytes() == b"x" * 3_000_000
    assert [fault.code for fault in faults] == ["NOT_A_FILE"] * 4
    assert all(name in " ".join(f.why for f in faults) for name in ("link", "folder link", "pipe", "socket"))


def test_a_folder_that_is_a_link_or_missing_gives_nothing(tmp_path: Path) -> None:
    """The folder itself is not followed either."""
    (tmp_path / "link").symlink_to("/etc")
    assert copied(tmp_path / "link", tmp_path / "one") == copied(tmp_path / "none", tmp_path / "two") == []
    assert not (tmp_path / "one").exists() and not (tmp_path / "two").exists()


def test_folders_without_end_are_cut(tmp_path: Path) -> None:
    """Below a depth that no model needs nothing is copied, and it is said."""
    deep = tmp_path / "source"
    for _ in range(DEEPEST + 10):
        deep = deep / "a"
    deep.mkdir(parents=True)
    (deep / "file").write_text("too deep")
    assert [fault.code for fault in copied(tmp_path / "source", tmp_path / "target")] == ["TOO_DEEP"]


def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """However often a name turns from a file or folder into a link to a secret, the secret is never in a copy."""
    secret, source, over = tmp_path / "secret", tmp_path / "source", threading.Event()
    secret.mkdir()
    (secret / "key").write_text("secret")
    (source / "name").mkdir(parents=True)
    (source / "name" / "key").write_text("plain")
    (source / "key").write_text("plain")
    (tmp_path / "to folder").symlink_to(secret)
    (tmp_path / "to file").symlink_to(secret / "key")

    def swap() -> None:
        while not over.is_set():
            for name, link in (("name", "to folder"), ("key", "to file")):
                (source / name).rename(tmp_path / "aside")
                (tmp_path / link).rename(source / name)
                (source / name).rename(tmp_path / link)
                (tmp_path / "aside").rename(source / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(150):
            copied(source, tmp_path / f"copy {number}")
    finally:
        over.set()
        swapping.join()
    texts = {file.read_text() for number in range(150) for file in (tmp_path / f"copy {number}").rglob("key*")
             if file.is_file()}  # fmt: skip
    assert texts <= {"plain"} and texts
    assert not any(file.is_symlink() for number in range(150) for file in (tmp_path / f"copy {number}").rglob("*"))
