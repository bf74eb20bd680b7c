"""What a checkpoint folder shows: names, sizes, links, parsed documents, headers. Rules think about this alone.

`look` is the only function of the audit that reads the folder (the scan for infinite numbers aside). Only regular
files are opened, each with a bound; subfolders are looked into for a `config.json` that lies too deep, no further.
Not covered: files below subfolders, which no engine reads.
"""

import os
import stat
from pathlib import Path
from typing import Any

from prill.checkpoint.documents import LARGEST_INDEX, Document, printable, read_json
from prill.checkpoint.tensors import Shard, read_shard
from prill.checkpoint.vocabulary import Vocabulary, read_vocabulary
from prill.record import Fault, Record

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
DOCUMENTS = (
    "config.json", "generation_config.json", "tokenizer_config.json", "adapter_config.json", "chat_template.json",
    "processor_config.json", "preprocessor_config.json", INDEX,
)  # fmt: skip
TEMPLATE = "chat_template.jinja"
LONGEST_TEMPLATE = 1 << 17
"""Bytes; the longest known template takes 25 kB."""
MOST_FILES = 4096
"""Files of a folder that are looked at; a checkpoint of a hundred shards has about 120."""


class View(Record, frozen=True, kw_only=True):
    """One folder."""

    files: dict[str, int]
    """Regular files at the top, by name, with their bytes. Links that stay inside the folder count as their target."""
    astray: tuple[str, ...] = ()
    """Links whose target is missing or outside, and special files."""
    deeper: tuple[str, ...] = ()
    """Subfolders that have a `config.json`."""
    documents: dict[str, Document]
    template: str | None = None
    """The text of `chat_template.jinja`; `None` without that file."""
    template_why: str = ""
    shards: dict[str, Shard | None]
    """Every safetensors file; `None` where its header cannot be used."""
    broken: dict[str, tuple[Fault, ...]]
    """What is wrong with each of those files' structure."""
    vocabulary: Vocabulary | None = None
    """`None` where no tokenizer file is there, or none that can be counted."""
    vocabulary_why: str = ""
    crowded: bool = False
    """More than `MOST_FILES` entries: the rest was not looked at."""

    def json(self, name: str) -> dict[str, Any]:
        """A document's object; empty where it is missing or unreadable."""
        document = self.documents.get(name)
        return document.value or {} if document else {}


def look(folder: Path) -> View:
    """Read a folder. Raises nothing for what a stranger may have put there."""
    files, astray, deeper, crowded = listing(folder)
    documents = {
        name: read_json(folder / name, LARGEST_INDEX) if name == INDEX else read_json(folder / name)
        for name in DOCUMENTS
        if name in files
    }
    template, template_why = read_text(folder / TEMPLATE) if TEMPLATE in files else (None, "")
    shards: dict[str, Shard | None] = {}
    broken: dict[str, tuple[Fault, ...]] = {}
    for name in sorted(files):
        if name.endswith(".safetensors"):
            shards[name], broken[name] = read_shard(folder / name, printable(name))
    config = documents["tokenizer_config.json"].value if "tokenizer_config.json" in documents else None
    vocabulary, vocabulary_why = read_vocabulary(folder, files, config or {})
    return View(
        files=files,
        astray=tuple(astray),
        deeper=tuple(deeper),
        documents=documents,
        template=template,
        template_why=template_why,
        shards=shards,
        broken=broken,
        vocabulary=vocabulary,
        vocabulary_why=vocabulary_why,
        crowded=crowded,
    )


def listing(folder: Path) -> tuple[dict[str, int], list[str], list[str], bool]:
    """Regular files with sizes, links and special files that lead nowhere, subfolders with a config, and whether
    there are more entries than are looked at."""
    files: dict[str, int] = {}
    astray: list[str] = []
    deeper: list[str] = []
    inside = os.path.realpath(folder)
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry, _ in zip(entries, range(MOST_FILES + 1), strict=False)), key=by_name)
    except OSError:
        return files, astray, deeper, False
    for entry in found[:MOST_FILES]:
        try:
            target = os.path.realpath(entry.path)
            mode = os.lstat(target)
        except (OSError, ValueError):
            astray.append(entry.name)
            continue
        stays = not entry.is_symlink() or target.startswith(inside + os.sep)
        if stays and stat.S_ISREG(mode.st_mode):
            files[entry.name] = mode.st_size
        elif stays and stat.S_ISDIR(mode.st_mode):
            if Path(target, "config.json").is_file():
                deeper.append(entry.name)
        else:
            astray.append(entry.name)
    return files, astray, deeper, len(found) > MOST_FILES


def by_name(entry: os.DirEntry[str]) -> str:
    """An entry's name."""
    return entry.name


def read_text(file: Path) -> tuple[str | None, str]:
    """A text file of bounded length, or `None` and why not."""
    try:
        with file.open("rb") as opened:
            data = opened.read(LONGEST_TEMPLATE + 1)
        if len(data) > LONGEST_TEMPLATE:
            return None, f"longer than {LONGEST_TEMPLATE} bytes"
        return data.decode(), ""
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        return None, "not UTF-8"
