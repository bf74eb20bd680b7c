"""The tokens that a checkpoint's tokenizer files name: how many ids they need, and which id a token has.

Read from `tokenizer.json`, else `vocab.json` or `vocab.txt`, with what `tokenizer_config.json` and
`added_tokens.json` add. Not covered: SentencePiece models without a `tokenizer.json`; they are not counted.
"""

from pathlib import Path
from typing import Any

import msgspec

from prill.checkpoint.documents import read_json, whole
from prill.record import Record

LARGEST = 64 << 20
"""Bytes of a tokenizer file; the largest known, with 262,145 tokens, takes 33 MB."""
FILES = ("tokenizer.json", "vocab.json", "vocab.txt")
UNCOUNTED = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "tekken.json")


class Vocabulary(Record, frozen=True, kw_only=True):
    """Tokens by id."""

    ids: dict[str, int]
    needed: int
    """Rows that an embedding table needs: the highest id plus one."""
    special: frozenset[str]
    """Tokens that were added by hand, which is where turn ends are found."""


class Added(msgspec.Struct):
    """An entry of `added_tokens`."""

    id: int
    content: str


class Model(msgspec.Struct):
    """The model part of a `tokenizer.json`: a mapping, or for Unigram a list of pieces."""

    vocab: dict[str, int] | list[tuple[str, float]] = {}


class Tokenizer(msgspec.Struct):
    """What is read of a `tokenizer.json`; other keys are skipped without being kept."""

    model: Model
    added_tokens: list[Added] = []


def read_vocabulary(folder: Path, files: dict[str, int], config: dict[str, Any]) -> tuple[Vocabulary | None, str]:
    """The tokens of a folder, or `None` and why: empty words where there is no tokenizer that can be counted."""
    name = next((name for name in FILES if name in files), None)
    if name is None:
        return None, ""
    try:
        with (folder / name).open("rb") as opened:
            data = opened.read(LARGEST + 1)
        if len(data) > LARGEST:
            return None, f"{name} is longer than {LARGEST} bytes"
        ids, special = tokens(name, data)
    except OSError as error:
        return None, f"{name} cannot be read ({error.strerror})"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"{name} is no tokenizer ({str(error)[:200]})"
    added = dict(declared(config))
    if "added_tokens.json" in files:
        found = read_json(folder / "added_tokens.json").value or {}
        added |= {token: number for token, number in found.items() if whole(number) and number >= 0}
    highest = max((number for number in (*ids.values(), *added.values())), default=-1)
    return Vocabulary(ids=ids | added, needed=highest + 1, special=special | frozenset(added)), ""


def tokens(name: str, data: bytes) -> tuple[dict[str, int], frozenset[str]]:
    """Token → id out of a file's bytes, and which of them were added. Raises for what is no such file."""
    if name == "vocab.txt":
        return {line: number for number, line in enumerate(data.decode().splitlines())}, frozenset()
    if name == "vocab.json":
        return msgspec.json.decode(data, type=dict[str, int]), frozenset()
    found = msgspec.json.decode(data, type=Tokenizer)
    vocab = found.model.vocab
    ids = vocab if isinstance(vocab, dict) else {piece: number for number, (piece, _) in enumerate(vocab)}
    added = {entry.content: entry.id for entry in found.added_tokens}
    return ids | added, frozenset(added)


def declared(config: dict[str, Any]) -> list[tuple[str, int]]:
    """(token, id) pairs of `added_tokens_decoder` in a tokenizer_config; what is malformed there is left out."""
    entries = config.get("added_tokens_decoder")
    found = []
    for number, entry in entries.items() if isinstance(entries, dict) else ():
        content = entry.get("content") if isinstance(entry, dict) else entry
        if isinstance(content, str) and number.isascii() and number.isdigit() and len(number) < 10:
            found.append((content, int(number)))
    return found
