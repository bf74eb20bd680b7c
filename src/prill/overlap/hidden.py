"""Text in disguise inside other text: lists of token ids, and blobs of base64."""

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from prill.errors import DefinitionError, InfraError

LISTS = re.compile(rb"\[\s*\d{1,7}(?:\s*,\s*\d{1,7}){63,}\s*\]")
BLOB = re.compile(rb"(?:[A-Za-z0-9+/_-]{40,}+(?:\\r|\\n|[\r\n])*)+={0,2}")
LETTERS = bytes(97 if (b < 128 and chr(b).isalnum()) or b in b"+/_-\\\r\n" else 32 for b in range(256))
STEP = 8
"""Only every so-many-th byte is looked at in search of a blob."""
LONG = b"a" * 24
FEWEST_LONG_WORDS = 3
"""In a segment, for blobs to be searched for; an item in base64 has more, and other text seldom as many."""
SHORTEST_BLOB = 256
LONGEST_TEXT = 1 << 24
FEWEST_DIFFERENT = 8
"""Token ids that a list must have; masks and one-hot lists have fewer."""


def lists(data: bytes) -> Iterator[tuple[int, list[int]]]:
    """Where a long list of whole numbers begins, and the numbers."""
    for found in LISTS.finditer(data):
        ids = [int(number) for number in found[0][1:-1].split(b",")]
        if len(set(ids)) >= FEWEST_DIFFERENT:
            yield found.start(), ids


def blobs(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Where a blob of base64 begins, and the text that it says, unpacked if it is packed. Images are no text."""
    sampled, at = data[::STEP].translate(LETTERS), 0
    while (at := sampled.find(LONG, at)) >= 0:
        place = at * STEP
        around = data[max(0, place - STEP) : place].translate(LETTERS).rfind(b" ")
        start = max(0, place - STEP) + around + 1
        found = BLOB.match(data, start)
        at = max(at + 1, found.end() // STEP) if found else at + 1
        if not found or len(found[0]) < SHORTEST_BLOB:
            continue
        bare = re.sub(rb"\\r|\\n|[\r\n]|=", b"", found[0]).translate(bytes.maketrans(b"-_", b"+/"))
        try:
            said = base64.b64decode(bare[: len(bare) // 4 * 4])
            if said[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\xda", b"\x78\x01"):
                said = zlib.decompressobj(47).decompress(said, LONGEST_TEXT)
        except (binascii.Error, zlib.error):
            continue
        if printable(said[:4096]):
            yield start, said


def printable(data: bytes) -> bool:
    """Whether bytes look like text."""
    plain = sum(32 <= b < 127 or b in (9, 10, 13) for b in data)
    return plain + 0.9 * sum(b > 127 for b in data) >= 0.9 * len(data) and plain >= 0.3 * len(data)


def decoder(folder: Path) -> Callable[[list[list[int]]], list[str]]:
    """Decodes lists of token ids with the tokenizer of a model folder (its `tokenizer.json`)."""
    file = folder / "tokenizer.json" if folder.is_dir() else folder
    if not file.is_file():
        raise DefinitionError(f"{folder}: no tokenizer.json there; give a model folder or the file itself")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InfraError("decoding token ids needs the tokenizers package; pip install 'prill[cpu]'") from None
    try:
        made = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises a bare Exception
        raise DefinitionError(f"{file}: not a tokenizer ({error})"[:300]) from None
    most = made.get_vocab_size()

    def decode(many: list[list[int]]) -> list[str]:
        """Texts; an id that the tokenizer does not have is passed over."""
        return list(made.decode_batch([[i for i in ids if i < most] for ids in many], skip_special_tokens=False))

    return decode
