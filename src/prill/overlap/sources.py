"""Files of any kind → streams of text bytes: what is packed is unpacked, what cannot be read is named with a reason.

Text, JSON, CSV and code are given as they are, byte for byte. gzip, xz, bzip2, zstd, zip and tar are unpacked as they
are read, Parquet and Arrow become JSON lines, NumPy arrays text or token ids, `.bin` files of raw numbers token ids,
UTF-16 becomes UTF-8. Other bytes (SQLite, pickles, programs) are given as they are too: text lies in them as text.
Links are not followed, and nothing is ever executed or unpickled. What comes out of a packed file is bounded by
`most_expanded`.
Not covered: encrypted archives, 7z, rar, and text that such other bytes hold compressed.
"""

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeVar

import msgspec

T = TypeVar("T")
BLOCK = 1 << 18
"""Bytes that are read at a time; a stream is cut into chunks by it, so it is part of what is found."""
DEEPEST = 4
MOST_MEMBERS = 100_000
SPOOLED = 1 << 26
MOST_SPOOLED = 1 << 30
IDS = "token ids"
"""What a stream of a file of raw token ids is called."""
IDS_IN_A_ROW = 1 << 13
FEWEST_IDS = 256
"""Bytes of a `.bin` file from which on it may be one."""
TEXT = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]{16}")
WEIGHTS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "BOOL", "U8", "I8"})


class Unread(Exception):
    """Why something cannot be read, in a few words."""


class Text(NamedTuple):
    """A stream of bytes that are text."""

    inside: str
    """Where in the file it lies, such as a member's name; empty where the stream is the file, byte for byte."""
    blocks: Iterator[bytes]


class Blocks(Protocol):
    """Something that gives its bytes from the first on."""

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes or fewer; none at the end."""
        ...


def most_expanded(packed: int) -> int:
    """Bytes that a packed file of that size may become."""
    return min(1 << 36, (1 << 28) + 200 * packed)


def files_below(root: Path, skip: tuple[str, ...] = ()) -> Iterator[tuple[str, Path, str]]:
    """Every entry below a folder, or a file itself, by name; with each why it is not looked into, or nothing."""
    if not root.is_dir() or root.is_symlink():
        yield root.name, root, irregular(root)
        return
    for directory, folders, names in os.walk(root):
        if Path(directory) == root:
            folders[:] = [name for name in folders if name not in skip]
        folders.sort()
        links = [name for name in folders if Path(directory, name).is_symlink()]
        for name in sorted([*names, *links]):
            file = Path(directory, name)
            if Path(directory) == root and name in skip:
                continue
            shown = os.fsencode(file.relative_to(root)).decode(errors="backslashreplace")
            yield shown, file, irregular(file)


def irregular(file: Path) -> str:
    """Why an entry is no file to be read."""
    try:
        mode = file.lstat().st_mode
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "a link; it is not followed"
    return "" if stat.S_ISREG(mode) else "a pipe, socket or device"


def texts(file: Path) -> Iterator[Text]:
    """The streams of a regular file. Raises `Unread`, also from a stream's blocks, where something cannot be read."""

    def all_of() -> Iterator[Text]:
        with file.open("rb", buffering=0) as opened:
            size = os.fstat(opened.fileno()).st_size
            yield from streams(Whole(opened), "", most_expanded(size), 0, file.suffix)

    for text in guarded(all_of()):
        yield Text(text.inside, guarded(text.blocks))


def guarded(of: Iterator[T]) -> Iterator[T]:
    """The same, with whatever a decoder raises about damaged bytes as `Unread`."""
    try:
        yield from of
    except Unread:
        raise
    except Exception as error:  # decoders raise what they like, and foreign bytes make them
        raise Unread(f"damaged or not readable ({type(error).__name__}: {error})"[:200]) from None


class Whole:
    """A file whose reads bring as much as is asked for while there is any, and whose beginning can be seen first."""

    def __init__(self, file: Any, limit: int | None = None) -> None:
        self.file, self.limit, self.head, self.given = file, limit, b"", 0

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay."""
        self.head += self._more(size - len(self.head))
        return self.head[:size]

    def read(self, size: int = -1, /) -> bytes:
        """As many bytes, or all there are; `Unread` beyond the limit."""
        size = 1 << 62 if size < 0 else size
        first, self.head = self.head[:size], self.head[size:]
        found = first + self._more(size - len(first)) if len(first) < size else first
        self.given += len(found)
        if self.limit is not None and self.given > self.limit:
            raise Unread(f"it unpacks to more than {self.limit} bytes")
        return found

    def _more(self, size: int) -> bytes:
        parts = []
        while size > 0 and (part := self.file.read(min(size, BLOCK))):
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def blocks(self) -> Iterator[bytes]:
        """All of it, in blocks of one size."""
        while block := self.read(BLOCK):
            yield block


def streams(data: Whole, inside: str, limit: int, depth: int, suffix: str) -> Iterator[Text]:
    """Streams of what is known by its first bytes."""
    if depth > DEEPEST:
        raise Unread(f"{inside or 'it'} is packed more than {DEEPEST} times")
    head = data.peek(1024)
    for magic, unpacked in UNPACKED.items():
        if head.startswith(magic):
            inner = Whole(unpacked(data), limit)
            yield from streams(inner, f"{inside}!" if inside else "unpacked", limit, depth + 1, "")
            return
    for magic, name in REFUSED.items():
        if head.startswith(magic):
            raise Unread(f"{name} is not opened")
    for magic, reader in SEEKING.items():
        if head.startswith(magic):
            yield from reader(seekable(data), inside, limit, depth)
            return
    if head[257:262] == b"ustar":
        yield from members_of_tar(data, inside, limit, depth)
    elif suffix == ".safetensors" and head[8:9] == b"{":
        yield from of_safetensors(data, inside)
    elif (suffix == ".arrow" or inside.endswith(".arrow")) and head.startswith(b"\xff\xff\xff\xff"):
        yield from rows_of_arrow(data, inside, limit, depth)
    elif (suffix == ".bin" or inside.endswith(".bin")) and (kind := kind_of_ids(head)):
        yield Text(f"{inside}!{IDS}" if inside else IDS, of_ids(data, kind))
    else:
        yield Text(inside, as_utf8(data, head))


def kind_of_ids(head: bytes) -> str:
    """Of the beginning of a `.bin` file the kind of numbers, if it may be raw token ids: no pickle, and no text."""
    if len(head) < FEWEST_IDS or head.startswith(b"\x80") or TEXT.search(head):
        return ""
    return "<u4" if head[3::4].count(0) == len(head[3::4]) else "<u2"


def of_ids(data: Whole, kind: str) -> Iterator[bytes]:
    """Raw numbers as lists, some thousands in a line."""
    import numpy as np

    while block := data.read(IDS_IN_A_ROW * np.dtype(kind).itemsize):
        whole = block[: len(block) // np.dtype(kind).itemsize * np.dtype(kind).itemsize]
        yield msgspec.json.encode(np.frombuffer(whole, kind).tolist()) + b"\n"


def seekable(data: Whole) -> IO[bytes]:
    """The whole of it as a file that can be read from anywhere: itself where it is one, else a copy of bounded size."""
    if isinstance(data.file, io.FileIO):
        data.file.seek(0)
        return data.file
    copy = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115 - closed when nothing refers to it
    for block in data.blocks():
        copy.write(block)
        if copy.tell() > MOST_SPOOLED:
            raise Unread(f"a packed file of more than {MOST_SPOOLED} bytes inside another is not opened")
    copy.seek(0)
    return copy


def as_utf8(data: Whole, head: bytes) -> Iterator[bytes]:
    """Blocks as they are, or as UTF-8 where the first bytes say, or show, that they are UTF-16 or UTF-32."""
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    encoding = next((name for mark, name in marks.items() if head.startswith(mark)), "")
    if not encoding and len(head) >= 64:
        even, odd = head[::2].count(0), head[1::2].count(0)
        encoding = "utf-16-le" if odd > 4 * even + 16 else "utf-16-be" if even > 4 * odd + 16 else ""
        shown = head[: len(head) & ~3].decode(encoding, errors="replace") if encoding else ""
        if sum(c.isprintable() or c.isspace() for c in shown) < 0.9 * len(shown):
            encoding = ""  # small numbers look like UTF-16 as well
    if not encoding:
        yield from data.blocks()
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in data.blocks():
        yield decoder.decode(block).encode(errors="replace")


def unzstd(data: Blocks) -> Any:
    """A zstd stream, unpacked."""
    try:
        import zstandard
    except ImportError:
        raise Unread("zstd needs the zstandard package; pip install 'prill[scan]'") from None
    source: Any = data
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(source, read_across_frames=True)


def members_of_tar(data: Whole, inside: str, limit: int, depth: int) -> Iterator[Text]:
    """Regular files of a tar archive."""
    with tarfile.open(fileobj=data, mode="r|") as archive:  # type: ignore[call-overload]
        for count, member in enumerate(archive):
            if count >= MOST_MEMBERS:
                raise Unread(f"more than {MOST_MEMBERS} members")
            opened = archive.extractfile(member) if member.isreg() else None
            if opened is not None:
                name = f"{inside}!{member.name}" if inside else member.name
                yield from streams(Whole(opened, limit), name, limit, depth + 1, Path(member.name).suffix)


def members_of_zip(file: IO[bytes], inside: str, limit: int, depth: int) -> Iterator[Text]:
    """Members of a zip archive."""
    with zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) > MOST_MEMBERS:
            raise Unread(f"more than {MOST_MEMBERS} members")
        locked = [member.filename for member in members if member.flag_bits & 1]
        left = limit
        for member in members:
            if member.filename in locked:
                continue
            name = f"{inside}!{member.filename}" if inside else member.filename
            with archive.open(member) as opened:
                whole = Whole(opened, left)
                yield from streams(whole, name, left, depth + 1, Path(member.filename).suffix)
                left -= whole.given
        if locked:
            raise Unread(f"{len(locked)} members are encrypted, the first is {locked[0]}")


def rows_of_parquet(file: IO[bytes], inside: str, limit: int, depth: int) -> Iterator[Text]:
    """Rows of a Parquet file as JSON lines."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise Unread("Parquet needs the pyarrow package; pip install 'prill[scan]'") from None
    yield Text(inside or "rows", json_lines(ParquetFile(file).iter_batches(256), limit))


def rows_of_arrow(file: Any, inside: str, limit: int, depth: int) -> Iterator[Text]:
    """Rows of an Arrow stream or file as JSON lines."""
    try:
        import pyarrow
    except ImportError:
        raise Unread("Arrow needs the pyarrow package; pip install 'prill[scan]'") from None
    if isinstance(file, Whole):
        yield Text(inside or "rows", json_lines(iter(pyarrow.ipc.open_stream(seekable(file))), limit))
        return
    opened = pyarrow.ipc.open_file(file)
    batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
    yield Text(inside or "rows", json_lines(batches, limit))


def json_lines(batches: Iterator[Any], limit: int) -> Iterator[bytes]:
    """Arrow batches as JSON lines, some rows at a time."""
    given = 0
    for batch in batches:
        for start in range(0, batch.num_rows, 64):
            rows = batch.slice(start, 64).to_pylist()
            lines = b"".join(msgspec.json.encode(row, enc_hook=str) + b"\n" for row in rows)
            given += len(lines)
            if given > limit:
                raise Unread(f"it unpacks to more than {limit} bytes")
            yield lines


def of_numpy(file: IO[bytes], inside: str, limit: int, depth: int) -> Iterator[Text]:
    """A NumPy array: strings as text, whole numbers as lists of token ids; others are no text."""
    import numpy as np

    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    if kind.hasobject:
        raise Unread("a NumPy array of pickled objects is not opened")
    if kind.kind not in "USiu":
        return

    def blocks() -> Iterator[bytes]:
        row = max(1, int(shape[-1]) if shape else 1)
        row = row if kind.kind in "iu" and row <= 1 << 16 else 1 << 12
        while data := file.read(kind.itemsize * row):
            values = np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind).tolist()
            texts = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values]
            yield msgspec.json.encode(texts) + b"\n" if kind.kind in "iu" else "\n".join(texts).encode() + b"\n"

    yield Text(inside or "array", blocks())


def of_safetensors(data: Whole, inside: str) -> Iterator[Text]:
    """Weights hold no text; a file that has large arrays of whole numbers instead may hold token ids."""
    size = int.from_bytes(data.peek(8), "little")
    try:
        header = msgspec.json.decode(data.peek(8 + min(size, 1 << 26))[8:], type=dict[str, Any])
        kinds = {str(about["dtype"]) for name, about in header.items() if name != "__metadata__"}
    except (msgspec.DecodeError, KeyError, TypeError):
        yield Text(inside, data.blocks())
        return
    if kinds - WEIGHTS:
        raise Unread(f"tensors of {', '.join(sorted(kinds - WEIGHTS))[:60]} may be token ids, and are not decoded")


UNPACKED: dict[bytes, Any] = {
    b"\x1f\x8b": lambda data: gzip.GzipFile(fileobj=data),
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
    b"\x28\xb5\x2f\xfd": unzstd,
}
SEEKING: dict[bytes, Any] = {
    b"PK\x03\x04": members_of_zip,
    b"PAR1": rows_of_parquet,
    b"ARROW1": rows_of_arrow,
    b"\x93NUMPY": of_numpy,
}
REFUSED = {b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!": "a rar archive"}
