"""An `Ask` out of a box without a network: inquiries are files in a shared folder, and so are the answers.

The judge in the box writes what it asks and waits; whoever opened the box has it answered, in boxes of its own.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from prill.errors import InfraError
from prill.folder import write_whole
from prill.sockets import Inquiry, Opinion

LARGEST = 64 << 20
"""Of a letter that is read."""
POLL_SECONDS = 0.05


class Letters:
    """See `Ask`."""

    def __init__(self, folder: Path, model: str, tries: int, patience_seconds: float) -> None:
        """`folder` is shared; `patience_seconds` is the most that one answer is waited for."""
        self.folder, self.model, self.tries, self.patience = folder, model, tries, patience_seconds
        self.sent = 0

    def __call__(self, inquiries: Sequence[Inquiry], read: Callable[[str], Any]) -> list[Opinion]:
        """See `Ask`."""
        found: dict[int, Opinion] = {}
        for round in range(1, self.tries + 1):
            todo = [number for number in range(len(inquiries)) if number not in found]
            for number, text in zip(todo, self.once([inquiries[each] for each in todo]), strict=True):
                value = read(text)
                if value is not None or round == self.tries:
                    why = "" if value is not None else f"no verdict in the answer, after {round} tries"
                    found[number] = Opinion(value=value, text=text, why=why, tries=round)
        return [found[number] for number in range(len(inquiries))]

    def once(self, inquiries: Sequence[Inquiry]) -> list[str]:
        """Each of them answered once."""
        if not inquiries:
            return []
        self.sent += len(inquiries)
        asked, heard = self.folder / "asked.json", self.folder / "heard.json"
        write_whole(asked, msgspec.json.encode(list(inquiries)), durable=False)
        until = time.monotonic() + self.patience * len(inquiries)
        while not heard.exists():
            if time.monotonic() > until:
                raise InfraError("nobody answers the judge")
            time.sleep(POLL_SECONDS)
        texts = msgspec.json.decode(heard.read_bytes(), type=list[str])
        heard.unlink()
        return texts

    def spent(self) -> dict[str, Any]:
        """See `Ask`; the price is in the judge's ledger, which lies outside."""
        return {"model": self.model, "replies": self.sent, "usd": None, "usd_why": "see the judge's ledger"}


def serve(folder: Path, answer: Callable[[list[Inquiry]], list[str]]) -> None:
    """Answer the letter that lies there, if one does."""
    asked = folder / "asked.json"
    if not asked.exists() or asked.is_symlink():
        return
    with asked.open("rb") as opened:
        data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise InfraError("the judge asks too much at once; make the panel's part_characters or votes smaller")
    texts = answer(msgspec.json.decode(data, type=list[Inquiry]))
    asked.unlink()
    write_whole(folder / "heard.json", msgspec.json.encode(texts), durable=False)
