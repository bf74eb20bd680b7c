"""What a stranger may send as a checkpoint: headers, holes, special files, templates and values of every kind."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import CONFIG, GOOD, KNOWN, codes, packed, put
from prill.checkpoint.audit import examine, examine_file
from prill.checkpoint.context import Context
from prill.checkpoint.finite import BLOCK
from prill.checkpoint.generation import RANGES
from prill.checkpoint.template import read_template
from prill.checkpoint.tensors import LARGEST_HEADER
from prill.checkpoint.view import MOST_FILES


def test_an_empty_folder_and_none_at_all_are_told(tmp_path: Path) -> None:
    """An empty folder and a missing one lack config, weights, tokenizer and all; nothing is counted."""
    for folder in (tmp_path, tmp_path / "gone"):
        report = examine(folder, Context())
        assert {"CONFIG_MISSING", "WEIGHTS_MISSING", "TOKENIZER_MISSING"} <= codes(report)
        assert report.tensors is None and report.parameters is None


NONFINITE = {
    "F64": (b"\0" * 6 + b"\xf0\x7f", b"\xff" * 6 + b"\xef\x7f"),
    "F32": (b"\0\0\x80\xff", b"\xff\xff\x7f\x7f"),
    "BF16": (b"\x80\x7f", b"\x7f\x7f"),
    "F16": (b"\0\xfc", b"\xff\x7b"),
    "F8_E5M2": (b"\x7c", b"\x7b"),
    "F8_E4M3": (b"\xff", b"\x7e"),
}
"""dtype → bytes of an infinity or NaN, and of the largest finite number."""


@pytest.mark.parametrize("dtype", NONFINITE)
def test_one_infinity_is_found_wherever_it_lies(tmp_path: Path, dtype: str) -> None:
    """An infinite or undefined number at the end of many blocks is found by index, the largest finite one is not."""
    bad, good = NONFINITE[dtype]
    count = (BLOCK + 4096) // len(bad)
    for last, wanted in ((bad, {"WEIGHTS_NONFINITE"}), (good, set())):
        file = tmp_path / "x.safetensors"
        file.write_bytes(packed({"a": [dtype, [3]], "b": [dtype, [count]]}, good * (3 + count - 1) + last))
        report = examine_file(file)
        assert codes(report) == wanted
        assert not wanted or f"element {count - 1} of 'b'" in report.faults[0].why


def test_the_whole_numbers_of_a_file_are_never_infinite(tmp_path: Path) -> None:
    """Bytes that would be NaN as floats are fine as integers."""
    (tmp_path / "x.safetensors").write_bytes(packed({"a": ["I32", [4]]}, b"\xff" * 16))
    assert codes(examine_file(tmp_path / "x.safetensors")) == set()


def test_forty_sparse_gigabytes_cost_nothing(tmp_path: Path) -> None:
    """A sparse file of 40 GB is read without reading its holes, and an infinity behind them is found."""
    file = tmp_path / "x.safetensors"
    count = 20 << 30
    head = packed({"a": ["BF16", [count]]}, b"")
    file.write_bytes(head)
    os.truncate(file, len(head) + 2 * count)
    assert codes(examine_file(file)) == set()
    with file.open("r+b") as opened:
        opened.seek(-2, os.SEEK_END)
        opened.write(NONFINITE["BF16"][0])
    assert codes(examine_file(file)) == {"WEIGHTS_NONFINITE"}


def entry(begin: Any, end: Any, shape: Any = (4,), dtype: Any = "BF16") -> dict[str, Any]:
    """One entry of a header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "size", "wanted"),
    [
        ({"a": entry(0, 8), "b": entry(8, 16)}, 16, ""),
        ({}, 0, ""),
        ({"a": entry(0, 0, [0, 5])}, 0, ""),
        ({"a": entry(0, 2, [])}, 2, ""),
        ({"a": entry(0, 8)}, 9, "FILE_TRAILING_BYTES"),
        ({"a": entry(0, 8), "b": entry(4, 12)}, 12, "OFFSETS_INVALID"),
        ({"a": entry(0, 8), "b": entry(10, 18)}, 18, "OFFSETS_INVALID"),
        ({"a": entry(2, 10)}, 10, "OFFSETS_INVALID"),
        ({"a": entry(8, 0)}, 8, "OFFSETS_INVALID"),
        ({"a": entry(-8, 0)}, 8, "OFFSETS_INVALID"),
        ({"a": entry(0, 8, [-4])}, 8, "OFFSETS_INVALID"),
        ({"a": entry(0, 8, [4.0])}, 8, "OFFSETS_INVALID"),
        ({"a": entry(0, 8, [True] * 4)}, 8, "OFFSETS_INVALID"),
        ({"a": entry(0, 8, [1 << 40] * 400)}, 8, "OFFSETS_INVALID"),
        ({"a": entry(0, 1 << 59, [1 << 58])}, 8, "FILE_TRUNCATED"),
        ({"a": entry(0, 8, dtype="Q4_K")}, 8, "HEADER_NOT_JSON"),
        ({"a": entry(0, 8, dtype=7)}, 8, "HEADER_NOT_JSON"),
        ({"a": [0, 8]}, 8, "HEADER_NOT_JSON"),
        ({"__metadata__": 7}, 0, "HEADER_NOT_JSON"),
        (b"[]", 0, "HEADER_NOT_JSON"),
        (b"", 0, "HEADER_NOT_JSON"),
        (b'{"\xff": 1}', 0, "HEADER_NOT_JSON"),
        (b'{"a":' + b"[" * 100_000, 0, "HEADER_NOT_JSON"),
        (b'{"a":' + b"1" * 10_000 + b"}", 0, "HEADER_NOT_JSON"),
        (b'{"a": 1, "a": 1}', 0, "HEADER_NOT_JSON"),
    ],
    ids=str,
)
def test_each_fault_of_a_header_has_its_code(tmp_path: Path, header: Any, size: int, wanted: str) -> None:
    """A header is accepted, or refused by its code, whatever it declares."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file = tmp_path / "x.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    assert codes(examine_file(file)) == set(wanted.split())


@pytest.mark.parametrize("length", [1 << 60, (1 << 64) - 1, LARGEST_HEADER + 1])
def test_a_declared_length_allocates_nothing(tmp_path: Path, length: int) -> None:
    """A header length beyond the file or the limit is refused before it is read, in a sparse file as well."""
    file = tmp_path / "x.safetensors"
    file.write_bytes(length.to_bytes(8, "little") + b"{")
    os.truncate(file, 1 << 35)
    assert codes(examine_file(file)) == {"HEADER_INCOMPLETE" if length > 1 << 35 else "HEADER_NOT_JSON"}


def test_no_special_file_is_opened(tmp_path: Path) -> None:
    """A pipe or a device in the place of a file is told and never opened."""
    put(tmp_path, {name: value for name, value in GOOD.items() if name != "config.json"})
    os.mkfifo(tmp_path / "config.json")
    (tmp_path / "generation_config.json").unlink()
    (tmp_path / "generation_config.json").symlink_to("/dev/zero")
    told = codes(examine(tmp_path, KNOWN))
    assert told == {"DANGLING_LINK"}


def test_many_files_and_strange_names_are_bounded_and_printable(tmp_path: Path) -> None:
    """Thousands of files stop the look, thousands of faults are summed up, and every word can be printed."""
    put(tmp_path, GOOD)
    for number in range(40):
        (tmp_path / os.fsdecode(b"\xff\n%d" % number)).symlink_to("gone")
    report = examine(tmp_path, KNOWN)
    assert len(report.faults) == 5 and "36 more" in report.faults[-1].why
    assert msgspec.json.encode(report) and all(fault.why.isprintable() for fault in report.faults)
    for number in range(MOST_FILES):
        (tmp_path / f"a{number}").touch()
    assert "TOO_MANY_FILES" in codes(examine(tmp_path, KNOWN))


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10000000000 }}",
        "{% for i in range(1000000000) %}{% for j in range(1000000000) %}x{% endfor %}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% set x = [0] %}{% for i in range(99) %}{% set x = x + x %}{% endfor %}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + " + ".join(["a"] * 20_000) + " }}",
        "{% if a %}" * 3000 + "{% endif %}" * 3000,
    ],
    ids=lambda text: text[:30],
)
def test_a_template_is_never_run(text: str) -> None:
    """Templates that would compute for ever, reach for Python or nest without end are looked at in no time."""
    found = read_template(text, frozenset({"<|im_end|>"}))
    assert found.why in ("", "nested too deep") and found.ends == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = [
    (name, key)
    for name, keys in {
        "config.json": (*CONFIG, "rope_scaling", "rope_parameters", "text_config", "vision_config", "auto_map"),
        "generation_config.json": (*RANGES, "max_length"),
        "tokenizer_config.json": ("eos_token", "pad_token", "chat_template", "added_tokens_decoder"),
        "tokenizer.json": ("model", "added_tokens"),
        "model.safetensors.index.json": ("weight_map", "metadata"),
    }.items()
    for key in keys
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FIELDS), JSON), max_size=4))
def test_no_value_in_a_document_raises(changes: list[tuple[tuple[str, str], Any]]) -> None:
    """Any JSON in any field that is read gives a report that can be stored."""
    with tempfile.TemporaryDirectory() as folder:
        files = json.loads(json.dumps(GOOD))
        for (name, key), value in changes:
            files.setdefault(name, {})[key] = value
        report = examine(put(Path(folder), files), Context(need_tokens=64, base_config=CONFIG))
        assert msgspec.json.encode(report)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_what_is_accepted_can_be_loaded(data: st.DataObject) -> None:
    """A safetensors file with bytes changed, cut or added is loaded by the format's own reader if it has no fault."""
    safetensors = pytest.importorskip("safetensors")
    whole = bytearray(packed({"a": ["BF16", [2, 3]], "b": ["F32", [2]]}))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    sent = bytes(whole)[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else bytes(whole)
    sent += data.draw(st.binary(max_size=2))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.safetensors")
        file.write_bytes(sent)
        if not codes(examine_file(file)) - {"WEIGHTS_NONFINITE"}:
            safetensors.deserialize(sent)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "{%",
                "%}",
                "{{",
                "}}",
                " if ",
                "for ",
                "in ",
                "endif",
                "m.content",
                "|",
                "'x'",
                "<|im_end|>",
                "\n",
                "{#",
                "(",
            ]
        )
    )
)
def test_no_text_raises_as_a_template(pieces: list[str]) -> None:
    """Any text is a template or has a reason not to be one."""
    found = read_template("".join(pieces), frozenset({"<|im_end|>"}))
    assert isinstance(found.why, str)
