"""The ledger: what is held, paid and given back, by many threads, and after a death in the middle of a line."""

import os
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from tempfile import gettempdir

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.errors import InfraError
from prill.gateway.burn import burn_rate, forecast
from prill.gateway.ledger import Entry, Ledger, entries, text
from prill.gateway.rent import Rent


def test_a_hold_is_paid_or_given_back_once(tmp_path: Path) -> None:
    """A purchase ends once, its rest is free again, and its line says what it was for."""
    with Ledger(tmp_path / "l", Decimal("1")) as ledger:
        assert ledger.hold("a", Decimal("0.7"), kind="model", model="m", step=3)
        assert not ledger.hold("b", Decimal("0.4"), kind="model")
        assert (ledger.held, ledger.left) == (Decimal("0.7"), Decimal("0.3"))
        assert ledger.charge("a", Decimal("0.1"), tokens={"input": 5})
        assert not ledger.charge("a", Decimal("0.1")) and not ledger.refund("a", why="x")
        assert ledger.hold("c", Decimal("0.9"), kind="teacher") and ledger.refund("c", why="not reached")
        assert (ledger.spent, ledger.held, ledger.left) == (Decimal("0.1"), 0, Decimal("0.9"))
        assert ledger.by_kind() == {"model": Decimal("0.1"), "teacher": 0}
        with pytest.raises(ValueError, match="has a purchase"):
            ledger.hold("a", Decimal("0.1"), kind="model")
    [hold, charge, *_], torn = entries(tmp_path / "l")
    assert (hold.action, hold.usd, charge.step, charge.model, charge.tokens, torn) == (
        *("hold", "0.7", 3, "m"),
        {"input": 5},
        0,
    )


def test_what_is_not_known_is_paid_in_full(tmp_path: Path) -> None:
    """An unknown cost takes the whole hold and is flagged, and one above the hold is paid and flagged."""
    with Ledger(tmp_path / "l", Decimal("1")) as ledger:
        ledger.hold("a", Decimal("0.2"), kind="model")
        ledger.charge("a", None, why="cut")
        ledger.hold("b", Decimal("0.2"), kind="model")
        ledger.charge("b", Decimal("0.3"))
        assert ledger.spent == Decimal("0.5")
    found = [entry for entry in entries(tmp_path / "l")[0] if entry.action == "charge"]
    assert [(entry.usd, entry.flagged) for entry in found] == [("0.2", True), ("0.3", True)]


def test_kinds_beside_the_limit_are_only_written_down(tmp_path: Path) -> None:
    """Where a wallet is for what the agent buys, its own model is counted and takes nothing from it."""
    with Ledger(tmp_path / "l", Decimal("1"), beside=("model",)) as ledger:
        assert ledger.hold("a", Decimal("5"), kind="model") and ledger.charge("a", Decimal("5"))
        assert ledger.left == 1 and ledger.by_kind() == {"model": Decimal("5")}
        assert not ledger.hold("b", Decimal("2"), kind="gpu")


def test_without_a_limit_everything_is_allowed(tmp_path: Path) -> None:
    """No limit is no refusal, and nothing is left of nothing."""
    with Ledger(tmp_path / "l", None) as ledger:
        assert ledger.hold("a", Decimal("1000000"), kind="model") and ledger.left is None


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.lists(st.sampled_from(["0.1", "0.3", "0.07"]), min_size=2, max_size=8))
def test_threads_cannot_take_the_last_dollar_twice(tenths: int, amounts: list[str]) -> None:
    """However many hold at once, what is spent or held stays within the limit, to the last digit."""
    path = Path(gettempdir(), f"prill-ledger-{os.getpid()}-{threading.get_ident()}")
    path.unlink(missing_ok=True)
    limit = Decimal(tenths) / 10
    with Ledger(path, limit) as ledger:
        start, won = threading.Barrier(len(amounts)), []

        def buy(number: int, amount: str) -> None:
            start.wait()
            if ledger.hold(str(number), Decimal(amount), kind="model", wait=False):
                won.append(Decimal(amount))
                if number % 2:
                    ledger.charge(str(number), Decimal(amount), wait=False)

        threads = [threading.Thread(target=buy, args=pair) for pair in enumerate(amounts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.spent + ledger.held == sum(won) <= limit
        refused = [Decimal(amount) for amount in amounts]
        assert len(won) == len(refused) or (ledger.left is not None and ledger.left < max(refused))
    path.unlink()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A ledger that is open is nobody else's, and a folder that is not there is our fault."""
    with Ledger(tmp_path / "l", None), pytest.raises(InfraError, match="another process keeps"):
        Ledger(tmp_path / "l", None)
    with pytest.raises(InfraError, match="cannot be opened"):
        Ledger(tmp_path / "none" / "l", None)


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_a_cut_line_means_nothing_and_stays(tmp_path: Path, cut: int) -> None:
    """Wherever the last line is cut, the ones before count, the cut bytes stay, and the next line is whole."""
    path = tmp_path / "l"
    with Ledger(path, Decimal("1")) as ledger:
        ledger.hold("a", Decimal("0.25"), kind="model")
        ledger.charge("a", Decimal("0.125"))
        ledger.hold("b", Decimal("0.5"), kind="model")
    whole = path.read_bytes()
    last = len(whole) - whole[:-1].rindex(b"\n") - 1
    kept = whole[: len(whole) - last + min(cut, last - 2)]
    path.write_bytes(kept)
    with Ledger(path, Decimal("1")) as ledger:
        assert (ledger.spent, ledger.held) == (Decimal("0.125"), 0)
        assert ledger.hold("c", Decimal("0.5"), kind="model")
        ledger.refund("c", why="")
    assert path.read_bytes().startswith(kept) and entries(path)[0][-1].action == "refund"


def test_a_dead_process_s_holds_are_paid_once(tmp_path: Path) -> None:
    """What was held when a process died is charged in full and flagged, once, however often the file is opened."""
    path = tmp_path / "l"
    with Ledger(path, Decimal("1")) as ledger:
        ledger.hold("a", Decimal("0.4"), kind="model", model="m", step=2)
    for _ in range(3):
        with Ledger(path, Decimal("1")) as ledger:
            assert (ledger.spent, ledger.held) == (Decimal("0.4"), 0)
    found = [entry for entry in entries(path)[0] if entry.action == "charge"]
    assert [(entry.usd, entry.flagged, entry.step) for entry in found] == [("0.4", True, 2)]


WRITER = """
import sys, threading
from decimal import Decimal
from pathlib import Path
from prill.gateway.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), Decimal("1000"))
def work(name):
    number = 0
    while True:
        number += 1
        ledger.hold(f"{name}.{number}", Decimal("0.5"), kind="model", wait=False)
        ledger.charge(f"{name}.{number}", Decimal("0.25"), wait=False)
for name in "ab":
    threading.Thread(target=work, args=name).start()
print("ready", flush=True)
"""


def test_kill_9_in_the_middle_of_writing(tmp_path: Path) -> None:
    """After a kill every purchase is paid once: at its price where it had ended, in full where it had not."""
    path = tmp_path / "l"
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            while path.stat().st_size < 50_000:
                pass
            os.kill(process.pid, signal.SIGKILL)
        with Ledger(path, Decimal("100000")) as ledger:
            found, _ = entries(path)
            held = {entry.id for entry in found if entry.action == "hold"}
            paid = [entry for entry in found if entry.action == "charge"]
            assert sorted(held) == sorted(entry.id for entry in paid)
            assert ledger.spent == sum(Decimal("0.5" if entry.flagged else "0.25") for entry in paid)
        path.unlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_buys_nothing(tmp_path: Path) -> None:
    """Where a line cannot be written the hold is not taken, and that is our fault, in one sentence."""
    ledger = Ledger(tmp_path / "l", Decimal("1"))
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(ledger._file)
    os.dup2(full, ledger._file)
    with pytest.raises(InfraError, match="cannot be written"):
        ledger.hold("a", Decimal("0.5"), kind="model")
    os.dup2(kept, ledger._file)
    assert ledger.hold("a", Decimal("1"), kind="model")
    ledger.charge("a", None)
    ledger.close()
    os.close(full)
    os.close(kept)
    assert [entry.action for entry in entries(tmp_path / "l")[0]] == ["hold", "charge"]


def test_rent_is_paid_ahead_and_stops_at_the_limit(tmp_path: Path) -> None:
    """Time is paid as it passes, never beyond the limit, and nothing is due after the end."""
    now = [0.0]
    with Ledger(tmp_path / "l", Decimal("0.1")) as ledger:
        rent = Rent(ledger, "gpu", Decimal("3"), what="H100", ahead_seconds=60, clock=lambda: now[0])
        assert rent.tick(step=4) and ledger.held == Decimal("0.05")
        now[0] = 30.0
        assert rent.tick() and ledger.spent == Decimal("0.025")
        now[0] = 90.0
        assert not rent.tick()
        rent.end()
        assert (ledger.spent, ledger.held) == (Decimal("0.075"), 0)
    assert entries(tmp_path / "l")[0][0].model == "H100"


def entry(at: float, usd: str, action: str = "charge") -> Entry:
    """A line."""
    return Entry(id=str(at), at=at, action=action, kind="model", usd=usd)  # type: ignore[arg-type]


def test_the_rate_looks_back_half_an_hour() -> None:
    """What was paid in the window, by the hour; before that nothing counts, and a young ledger has a short window."""
    assert burn_rate([entry(0, "9"), entry(3000, "1"), entry(3500, "1")], 3600) == 4
    assert burn_rate([entry(0, "0", "hold"), entry(100, "1")], 360) == 10
    assert burn_rate([], 5) == 0


@pytest.mark.parametrize(
    ("left", "rate", "hours", "lasts"),
    [("10", "2", 4.0, True), ("10", "2", 6.0, False), ("10", "0", 6.0, True), (None, "2", 6.0, True)],
)
def test_the_forecast_says_whether_it_lasts(left: str | None, rate: str, hours: float, lasts: bool) -> None:
    """Money that ends before the time does is told in words."""
    found = forecast(None if left is None else Decimal(left), Decimal(rate), hours)
    assert found.lasts is lasts and ("will not last" in found.words) is not lasts


@given(st.decimals(min_value=0, max_value=10**9, places=12))
def test_amounts_are_written_without_an_exponent(amount: Decimal) -> None:
    """An amount is read back as it was."""
    assert "E" not in text(amount) and Decimal(text(amount)) == amount


@given(st.binary(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_ledger(data: bytes) -> None:
    """Whatever stands in the file, it is read, and what is no entry counts for nothing."""
    path = Path(gettempdir(), f"prill-fuzz-{os.getpid()}-{threading.get_ident()}")
    path.write_bytes(data)
    try:
        with Ledger(path, Decimal("1")) as ledger:
            assert ledger.spent == 0 and ledger.hold("a", Decimal("1"), kind="model")
    finally:
        path.unlink()


def test_calls_leave_the_next_minutes_of_a_machine_alone(tmp_path: Path) -> None:
    """Calls that hold all they can take no minute from what is paid by the hour, and may have it once it has gone."""
    now = [0.0]
    with Ledger(tmp_path / "l", Decimal("1"), beside=("teacher",)) as ledger:
        rent = Rent(ledger, "gpu", Decimal("3.6"), clock=lambda: now[0])
        assert rent.tick() and (ledger.left, ledger.room("model")) == (Decimal("0.94"), Decimal("0.64"))
        assert not ledger.hold("a", Decimal("0.65"), kind="model") and ledger.hold("b", Decimal("0.64"), kind="model")
        assert ledger.hold("c", Decimal("5"), kind="teacher")
        for second in (30, 60, 90):
            now[0] = float(second)
            assert rent.tick()
        assert ledger.room("model") < 0 and ledger.spent == Decimal("0.09")
        rent.end()
        assert ledger.room("model") == ledger.left == Decimal("0.27")
