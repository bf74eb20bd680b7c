"""The ledger: one append-only file in which a run's money is held, charged, given back and refused.

Each line is an entry, on disk before what it pays for begins. Whoever opens the file reads it from the start: what a
dead process held is charged in full and flagged, since the call may have been made (Y3). A line that a crash cut is
left where it is and means nothing: a hold is whole before its call leaves, so no money hangs on a cut one.
Not covered: a disk that lies about fsync, and somebody else who writes the file without taking its lock.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal
from uuid import uuid4

import msgspec
from msgspec import Struct

from prill.errors import InfraError
from prill.outside import Purchase
from prill.wallet import Cost, Wallet, money

Action = Literal["hold", "charge", "refund", "refuse", "free"]
"""`hold`: set aside; `charge`: paid, the rest of its hold given back; `refund`: the whole hold given back;
`refuse`: not allowed, nothing spent; `free`: let through without a price."""
HOURLY: frozenset[Purchase] = frozenset({"gpu", "storage"})
"""Kinds that are paid for as time passes: for them something is kept free that no call may take."""
BOUNDLESS = Decimal("1e15")
"""The limit of a wallet that has none."""


class Passed(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How a call went through the door. Never a body, never a key: its name only."""

    method: str
    path: str
    host: str
    """That the call was sent to; empty where it was not sent."""
    key: str | None = None
    """Name of the variable that the key was in."""
    bore: Purchase | None = None
    """Whose the box's own key was that the call showed: of the door to the agent's `model`, or to its `teacher`."""
    status: int
    """What the client was told; 0 where it had hung up before."""
    sent: int
    """Bytes of the request's body."""
    received: int = 0
    """Bytes of the reply's body, read to its end whether the client stayed or not."""
    seconds: float
    cut: Literal["", "client", "provider", "time", "shutdown"] = ""
    """Who ended the call before the reply was whole."""


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One line of the ledger. All lines of one purchase have its id."""

    id: str
    at: float
    """Seconds since 1970."""
    action: Action
    kind: Purchase
    usd: str
    """Dollars as decimal text."""
    step: int | None = None
    """Of the trajectory, when the purchase began; `None`: not known."""
    model: str | None = None
    tokens: dict[str, int] = {}
    """By kind: `input`, `output`, `cache_read`, `cache_write_5m`, `cache_write_1h`; and `tool.NAME`: uses."""
    why: str = ""
    flagged: bool = False
    """The amount is not what the provider said: look at `why`."""
    passed: Passed | None = None


def entries(path: Path) -> tuple[list[Entry], int]:
    """Every whole line of a ledger, in order, and how many were cut by a crash. No file is an empty ledger."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], 0
    found, torn = [], 0
    for line in lines:
        try:
            found += [msgspec.json.decode(line, type=Entry)] if line.strip() else []
        except (msgspec.DecodeError, UnicodeDecodeError):
            torn += 1
    return found, torn


def text(amount: Decimal) -> str:
    """An amount as the ledger writes it: never with an exponent."""
    return format(amount.normalize() if amount else Decimal(0), "f")


def plain(words: str) -> str:
    """A text that any file can hold: what is no character is spelt."""
    return words.encode(errors="backslashreplace").decode()


class Ledger:
    """A limit in dollars and all that was bought under it. Safe for threads: each change is one step.

    `beside` are kinds that are written down and not limited, such as the agent's own model where a suite's wallet is
    for what the agent buys. Raises `InfraError` where the file is another process's or cannot be written; then
    nothing may be bought.
    """

    def __init__(
        self,
        path: Path,
        limit_usd: Decimal | None,
        *,
        beside: Collection[Purchase] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self.limit, self.beside = path, limit_usd, frozenset(beside)
        self._clock, self._lock, self._syncing = clock, threading.Lock(), threading.Lock()
        self._open: dict[str, Entry] = {}
        self._closed: set[str] = set()
        self._kinds: dict[Purchase, Decimal] = {}
        self._free: dict[str, tuple[Purchase, Decimal]] = {}
        self._wallet = Wallet(BOUNDLESS if limit_usd is None else limit_usd)
        self._beside = Wallet(BOUNDLESS)
        self._written = self._synced = 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise InfraError(f"{path}: another process keeps this ledger; wait for it") from None
        except OSError as error:
            raise InfraError(f"{path}: the ledger cannot be opened ({error.strerror}); nothing may be bought") from None
        self._replay()

    def _replay(self) -> None:
        """What the file says, and the end of what a dead process began."""
        found, self.torn = entries(self.path)
        for entry in found:
            self._apply(entry)
        size = os.fstat(self._file).st_size
        self._cut = bool(size) and os.pread(self._file, 1, size - 1) != b"\n"
        for left in list(self._open.values()):
            self._settle(left.id, "charge", None, why="the process ended before the provider's bill", flagged=True)
        self.sync()

    # --- what is left ---

    @property
    def spent(self) -> Decimal:
        """Dollars charged against the limit."""
        return self._wallet.spent

    @property
    def held(self) -> Decimal:
        """Dollars set aside for calls under way, against the limit."""
        return self._wallet.taken - self._wallet.spent

    @property
    def left(self) -> Decimal | None:
        """Dollars that can still be held; `None`: there is no limit."""
        return None if self.limit is None else self.limit - self._wallet.taken

    def room(self, kind: Purchase) -> Decimal:
        """Dollars that a purchase of this kind may take; never what is kept free for another."""
        wallet = self._of(kind)
        kept = (usd for other, usd in self._free.values() if self._of(other) is wallet and kind not in HOURLY)
        return wallet.limit - wallet.taken - sum(kept, Decimal(0))

    def keep_free(self, name: str, kind: Purchase, usd: Decimal) -> None:
        """From now on calls leave so much alone for a thing that is paid by the hour; 0: nothing more."""
        with self._lock:
            self._free = {**self._free, name: (kind, usd)}

    def by_kind(self) -> dict[Purchase, Decimal]:
        """Dollars charged, by kind, those beside the limit too."""
        with self._lock:
            return dict(self._kinds)

    # --- what changes it ---

    def hold(
        self, id: str, usd: Decimal, *, kind: Purchase, model: str | None = None, step: int | None = None,
        wait: bool = True,
    ) -> bool:  # fmt: skip
        """Set the most that a purchase may cost aside; False where the limit does not allow it. Atomic.

        `wait=False`: on disk only after `sync()`, which must come before the money can be spent.
        """
        entry = Entry(id=id, at=self._clock(), action="hold", kind=kind, usd=text(usd), model=model, step=step)
        with self._lock:
            if id in self._open or id in self._closed:
                raise ValueError(f"the ledger has a purchase {id!r} already")
            if self._of(kind).hold(id, usd) is None or usd > self.room(kind):
                return False
            self._write(entry)
            self._apply(entry)
        if wait:
            self.sync()
        return True

    def charge(
        self,
        id: str,
        usd: Decimal | None,
        *,
        tokens: Mapping[str, int] | None = None,
        why: str = "",
        flagged: bool = False,
        passed: Passed | None = None,
        wait: bool = True,
    ) -> bool:
        """Pay what is held, and give the rest of the hold back; `None`: not known, so the whole hold is paid, flagged.

        False where it is settled already: a purchase is never paid twice.
        """
        with self._lock:
            done = self._settle(id, "charge", usd, tokens=tokens, why=why, flagged=flagged, passed=passed)
        if wait:
            self.sync()
        return done

    def refund(self, id: str, *, why: str, passed: Passed | None = None, wait: bool = True) -> bool:
        """Give a whole hold back; False where it is settled already."""
        with self._lock:
            done = self._settle(id, "refund", Decimal(0), why=why, passed=passed)
        if wait:
            self.sync()
        return done

    def note(
        self,
        action: Literal["refuse", "free"],
        *,
        kind: Purchase = "model",
        usd: Decimal = Decimal(0),
        model: str | None = None,
        step: int | None = None,
        why: str = "",
        passed: Passed | None = None,
    ) -> None:
        """Write down what was refused or let through for nothing; `usd` is what it would have had to hold."""
        entry = Entry(
            id=uuid4().hex,
            at=self._clock(),
            action=action,
            kind=kind,
            usd=text(usd),
            model=None if model is None else plain(model),
            step=step,
            why=plain(why),
            passed=passed,
        )
        with self._lock:
            self._write(entry)

    def sync(self) -> None:
        """All that was written so far is on disk when this returns; threads that wait share one fsync."""
        upto = self._written
        with self._syncing:
            if self._synced >= upto:
                return
            written = self._written
            try:
                os.fsync(self._file)
            except OSError as error:
                raise self._unwritable(error) from None
            self._synced = written

    def close(self) -> None:
        """To disk, and free for the next process. What is still held is charged by whoever opens it next."""
        try:
            self.sync()
        finally:
            os.close(self._file)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- inside, under the lock ---

    def _of(self, kind: Purchase) -> Wallet:
        return self._beside if kind in self.beside else self._wallet

    def _settle(
        self,
        id: str,
        action: Literal["charge", "refund"],
        usd: Decimal | None,
        *,
        tokens: Mapping[str, int] | None = None,
        why: str = "",
        flagged: bool = False,
        passed: Passed | None = None,
    ) -> bool:
        hold = self._open.get(id)
        if hold is None:
            return False
        most = Decimal(hold.usd)
        if usd is not None and usd > most:
            flagged, why = True, "; ".join(filter(None, [why, f"more than the {hold.usd} held"]))
        entry = Entry(
            id=id,
            at=self._clock(),
            action=action,
            kind=hold.kind,
            usd=text(most if usd is None else usd),
            step=hold.step,
            model=hold.model,
            tokens=dict(tokens or {}),
            why=why,
            flagged=flagged or usd is None,
            passed=passed,
        )
        self._write(entry)
        self._apply(entry)
        return True

    def _apply(self, entry: Entry) -> None:
        """The state after one more entry. A second end of one purchase changes nothing."""
        amount = money(entry.usd)
        if amount is None or entry.action in ("refuse", "free") or entry.id in self._closed:
            return
        beside = entry.kind in self.beside
        wallet = self._of(entry.kind)
        if entry.action == "hold":
            changed = Wallet(wallet.limit, wallet.spent, {**wallet.held, entry.id: amount})
            self._open[entry.id] = entry
        else:
            changed = wallet.charge(entry.id, Cost(amount))
            self._kinds[entry.kind] = self._kinds.get(entry.kind, Decimal(0)) + amount
            self._open.pop(entry.id, None)
            self._closed.add(entry.id)
        if beside:
            self._beside = changed
        else:
            self._wallet = changed

    def _write(self, entry: Entry) -> None:
        line = (b"\n" if self._cut else b"") + msgspec.json.encode(entry) + b"\n"
        done = 0
        try:
            while done < len(line):
                done += os.write(self._file, line[done:])
        except OSError as error:
            self._cut = self._cut or done > 0
            raise self._unwritable(error) from None
        self._cut = False
        self._written += 1

    def _unwritable(self, error: OSError) -> InfraError:
        return InfraError(f"{self.path}: the ledger cannot be written ({error.strerror}); nothing more may be bought")
