"""What a person sees while runs are under way: a line as each stage begins and ends, and a heartbeat.

Lines go to standard error, so that a log reads as well as a terminal.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from prill.spec import RunSpec

HEARTBEAT_SECONDS = 15.0


class Progress:
    """Counts runs and remembers which stage each is in. Safe to call from several threads."""

    def __init__(self, total: int, pace: Callable[[str], Mapping[str, Any] | None] = lambda _: None) -> None:
        """`pace` knows, for a run's id, how far its measuring is."""
        self.total, self.pace = total, pace
        self.ids: dict[tuple[str, str, int], str] = {}
        self.over = 0
        self.now: dict[tuple[str, str, int], tuple[str, float, float | None]] = {}
        self.spoke = time.monotonic()
        self.lock = threading.Lock()

    def tell(self, spec: RunSpec, stage: str, what: str) -> None:
        """A stage of a run `began`, `ended` or `FAILED`."""
        name = spec.entrant.name, "+".join(test.name for test in spec.benchmarks), spec.seed
        with self.lock:
            if what == "began":
                self.ids[name] = spec.id
                self.now[name] = stage, time.monotonic(), spec.budget.hours * 3600 if stage == "solve" else None
                limit = f", {clock(spec.budget.hours * 3600)} at most" if stage == "solve" else ""
                self.say(f"{label(name)} {stage:<8} began{limit}")
                return
            _, began, _ = self.now.pop(name, (stage, time.monotonic(), None))
            last = stage == "judge" or what != "ended"
            self.over += last
            count = f"   [{self.over} of {self.total} runs]" if last else ""
            self.say(f"{label(name)} {stage:<8} {what} after {clock(time.monotonic() - began)}{count}")

    def tick(self, seconds: float) -> None:
        """Every second or so: a heartbeat when nothing was said for a while."""
        with self.lock:
            if time.monotonic() - self.spoke >= HEARTBEAT_SECONDS and self.now:
                under_way = ", ".join(
                    f"{name[0]} {stage} {clock(time.monotonic() - began)}"
                    f"{f' of {clock(limit)}' if limit else ''}{self.further(name, stage)}"
                    for name, (stage, began, limit) in self.now.items()
                )
                self.say(f"… {under_way}; {self.over} of {self.total} runs over, {clock(seconds)} in all")

    def further(self, name: tuple[str, str, int], stage: str) -> str:
        """How far a measuring is."""
        pace = self.pace(self.ids[name]) if stage == "measure" else None
        return f" ({at_pace(pace)})" if pace else ""

    def say(self, line: str) -> None:
        """One line with the time of day."""
        self.spoke = time.monotonic()
        print(f"{time.strftime('%H:%M:%S')}  {line}", file=sys.stderr, flush=True)


def at_pace(pace: Mapping[str, Any]) -> str:
    """`gsm8k 120 of 300, 41/s, 0:04 left`; behind the numbers stands what is done where that is not asking."""
    rate, left = pace.get("per_second"), pace.get("seconds_left")
    fast = (
        ""
        if not rate
        else f", {rate:.0f}/s"
        if rate >= 10
        else f", {rate:.2g}/s"
        if rate >= 1
        else f", {60 * rate:.2g}/min"
    )
    seed = "" if pace.get("seed") is None else f" seed {pace['seed']}"
    what = "" if pace.get("what") in (None, "asked") else f" {pace['what']}"
    rest = f"{fast}{f', {clock(left)} left' if left else ''}"
    return f"{pace['benchmark']}{seed} {pace['done']} of {pace['total']}{what}{rest}"


def label(name: tuple[str, str, int]) -> str:
    """A run in a column."""
    return f"{name[0]:<18}" + (f" seed {name[2]}" if name[2] else "")


def clock(seconds: float) -> str:
    """`75` → "1:15"; hours are shown when there are any."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
