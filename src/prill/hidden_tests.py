"""LiveCodeBench's hidden tests: base64 of zlib of a pickled string of JSON. Read here without ever unpickling.

Whoever can publish a row could put a program into a pickle. So its opcodes are listed, not run, and only those that
write down one string are let through; what unpacks to more than a bound is refused.
"""

import base64
import pickletools
import zlib

import msgspec

LARGEST = 1 << 30
"""Bytes that the tests of one task may unpack to."""
HARMLESS = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"}
STRINGS = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}


class Case(msgspec.Struct, frozen=True):
    """One test: what goes in, what must come out, and whether through `stdin` or a function (`functional`)."""

    input: str
    output: str
    testtype: str


def unpack(packed: str) -> list[Case]:
    """The tests of one task, from their packed form or from plain JSON. Raises `ValueError` on anything else."""
    if packed.lstrip()[:1] == "[":
        return decode(packed)
    try:
        pressed = base64.b64decode(packed, validate=True)
        unpacker = zlib.decompressobj()
        pickled = unpacker.decompress(pressed, LARGEST)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"hidden tests are not base64 of zlib ({error})") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise ValueError(f"hidden tests are cut off or unpack to more than {LARGEST} bytes")
    return decode(written(pickled))


def written(pickled: bytes) -> str:
    """The one string that a pickle writes down."""
    found: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name in STRINGS:
                found.append(str(argument))
            elif opcode.name not in HARMLESS:
                raise ValueError(f"its opcode {opcode.name} does more than write down a string")
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"hidden tests are no pickled string ({error})") from None
    if len(found) != 1:
        raise ValueError(f"hidden tests are no pickled string (it writes down {len(found)})")
    return found[0]


def decode(text: str) -> list[Case]:
    """Tests out of JSON."""
    try:
        return msgspec.json.decode(text, type=list[Case])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"hidden tests are not a list of tests ({error})") from None
