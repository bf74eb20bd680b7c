"""A run told in plain words: its facts, what happened when, and the one-screen text of `prill show`.

Values in, words out; nothing is read or looked up here. Text that an agent or a model wrote goes through `plain`
before a person sees it: a terminal or a page then shows control characters and never obeys them.
Not covered: look-alike letters, and words that lie.
"""

import re
from collections.abc import Iterable, Mapping
from math import inf, isfinite, sqrt
from textwrap import wrap
from typing import Any, Literal

from prill import bill
from prill.classify import IN_WORDS
from prill.record import Citation, Event, Finding, Measurement, Outcome, Record, Run, Step, Submission

Kind = Literal["stage", "step", "signal", "submission", "value", "finding", "failure", "note", "more"]
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff"
    "\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, bidi marks and overrides, zero-width and private characters, lone surrogates. Not newline and tab."""
SCREEN = 40
"""Lines of one screen."""
NO_OUTCOME = {
    "planned": "not begun yet",
    "running": "still running",
    "lost": "lost: solving began and never ended, and nobody is at work on it",
}
NONE_KNOWN: Mapping[str, str | None] = {}
Z = 1.959964
"""Two-sided 95 % of a normal distribution."""


class Moment(Record, frozen=True, kw_only=True):
    """One line of the timeline."""

    seconds: float | None
    """Since the solve began; `None` where no clock was read."""
    stage: str
    kind: Kind
    text: str
    step: int | None = None
    citations: tuple[Citation, ...] = ()


Told = list[tuple[Kind, str, tuple[Citation, ...]]]


class Fact(Record, frozen=True, kw_only=True):
    """One headline fact. `mark` says whether it is missing or needs a second look."""

    name: str
    text: str
    mark: Literal["", "missing", "warning"] = ""


class Story(Record, frozen=True, kw_only=True):
    """A run in words."""

    run: str
    title: str
    facts: tuple[Fact, ...]
    timeline: tuple[Moment, ...]
    rates: dict[str, str]
    """Judge → how often it is wrong, where that was measured."""


# --- words ---


def plain(text: str) -> str:
    """The text with every character that a screen would obey, or not show, written out."""
    return UNSEEN.sub(lambda found: _name(ord(found[0])), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(plain(text).split())


def _name(code: int) -> str:
    return chr(0x2400 + code) if code < 32 else f"⟨U+{code:04X}⟩"


def clock(seconds: float | None) -> str:
    """`3725.4` → "1:02:05"."""
    if seconds is None or not isfinite(seconds):
        return "no time"
    whole = int(abs(seconds))
    return f"{'−' if seconds <= -1 else ''}{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def percent(value: float) -> str:
    """`0.4375` → "43.75"."""
    return f"{100 * value:.2f}"


def size(count: int) -> str:
    """`2097152` → "2.1 MB"; exact below 1,000 bytes."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:.1f} {unit}"
    return f"{count} bytes"


def many(count: int, word: str) -> str:
    """`1412, "step"` → "1,412 steps"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def interval(value: float, n: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a share of `n` items. Unlike ± errors it is never of no width."""
    if n < 1 or not 0 <= value <= 1:
        return None
    middle, half = value + Z * Z / (2 * n), Z * sqrt(value * (1 - value) / n + Z * Z / (4 * n * n))
    return max(0.0, (middle - half) / (1 + Z * Z / n)), min(1.0, (middle + half) / (1 + Z * Z / n))


def place(citation: Citation) -> str:
    """Where a citation points: "raw/stdout, bytes 10 to 49"; the last byte is included."""
    words = one_line(citation.file)
    if citation.offset is not None and citation.length is not None:
        last = citation.offset + max(citation.length - 1, 0)
        words += f", bytes {citation.offset:,} to {last:,}"
    elif citation.offset is not None:
        words += f", from byte {citation.offset:,}"
    return words + (f", line {citation.line:,}" if citation.line is not None else "")


# --- reading steps ---


def steps_of(trajectory: Any) -> list[Step]:
    """Steps out of an ATIF trajectory. Never raises and drops no entry; what it does not know is kind `other`."""
    entries = trajectory.get("steps") if isinstance(trajectory, Mapping) else None
    entries = entries if isinstance(entries, list) else []
    numbers = [entry.get("step_id") if isinstance(entry, Mapping) else None for entry in entries]
    usable = all(_whole(number) for number in numbers) and len(set(map(str, numbers))) == len(numbers)
    return [_step(entry, numbers[at] if usable else at + 1) for at, entry in enumerate(entries)]


def _step(entry: Any, number: Any) -> Step:
    if not isinstance(entry, Mapping):
        return Step(step=number, kind="other", text=str(entry), offset=0, length=0)
    extra = entry.get("extra")
    extra = extra if isinstance(extra, Mapping) else {}
    kind, message, seconds = extra.get("kind"), entry.get("message"), extra.get("seconds")
    timed = isinstance(seconds, int | float) and not isinstance(seconds, bool) and isfinite(seconds)
    return Step(
        step=number,
        kind=kind if kind in ("message", "command", "result") else "other",
        text=message if isinstance(message, str) else "" if message is None else str(message),
        offset=extra["offset"] if _whole(extra.get("offset"), 0) else 0,
        length=extra["length"] if _whole(extra.get("length"), 0) else 0,
        seconds=seconds if timed else None,
    )


def _whole(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


# --- telling ---


def tell(run: Run, events: list[Event], steps: list[Step], rates: Mapping[str, str | None] = NONE_KNOWN) -> Story:
    """The run in words. Moments stand in the order of their clocks; what has no clock follows its stage. `rates` says
    how often each judge is wrong."""
    done = {event.stage: event.at for event in events if event.event == "ended"}
    placed = [*_signals(run, events, done.get("solve", inf)), *_events(run, events)]
    latest, began = -inf, run.began or 0.0
    for step in steps:
        latest = began + step.seconds if step.seconds is not None else max(latest, began)
        text = f"{step.kind}: {one_line(step.text[:400]) or '(nothing but blanks)'}"
        moment = Moment(seconds=step.seconds, stage="solve", kind="step", text=text, step=step.step)
        placed.append((latest, moment))
    values: Told = [("value", measurement_words(made), ()) for made in run.measurements]
    for stage, moments in {"seal": _sealed(run), "measure": values, "judge": _judged(run)}.items():
        at = done.get(stage, inf)
        seconds = at - run.began if run.began is not None and at < inf else None
        for kind, text, citations in moments:
            placed.append((at, Moment(seconds=seconds, stage=stage, kind=kind, text=text, citations=citations)))
    tests = " and ".join(benchmark.title for benchmark in run.spec.benchmarks)
    return Story(
        run=run.spec.id,
        title=one_line(f"{run.spec.entrant.title} on {run.spec.model.title}, {tests}, seed {run.spec.seed}"),
        facts=tuple(_facts(run, len(steps))),
        timeline=tuple(moment for _, moment in sorted(placed, key=lambda pair: pair[0])),
        rates={judge: rate for judge in sorted({each.judge for each in run.judgements}) if (rate := rates.get(judge))},
    )


def _events(run: Run, events: list[Event]) -> list[tuple[float, Moment]]:
    placed: list[tuple[float, Moment]] = []
    for event in events:
        torn = event.event == "torn"
        at = (placed[-1][0] if placed else -inf) if torn else event.at
        seconds = None if torn or run.began is None else event.at - run.began
        kind, text = _event_words(event)
        placed.append((at, Moment(seconds=seconds, stage=event.stage or "run", kind=kind, text=text)))
    return placed


def _signals(run: Run, events: list[Event], at: float) -> list[tuple[float, Moment]]:
    """Signals that stand in the outcome alone, just before the end of solving."""
    if run.outcome is None or any(event.event == "signal" for event in events):
        return []
    texts = [f"sent {name} to the agent's processes" for name in run.outcome.signals]
    return [(at, Moment(seconds=None, stage="solve", kind="signal", text=text)) for text in texts]


def _event_words(event: Event) -> tuple[Kind, str]:
    pairs = [_pair(name, value) for name, value in event.detail.items() if name != "traceback"]
    words = ", ".join(pair for pair in pairs if pair)
    if event.event == "signal":
        return "signal", f"sent {one_line(str(event.detail.get('signal', words)))} to the agent's processes"
    if event.event == "failed":
        last = str(event.detail.get("traceback", "")).strip().splitlines()[-1:]
        why = event.detail.get("why") or words or (last[0] if last else "no reason was written")
        return "failure", f"failed, which is ours and not the agent's: {one_line(str(why)[:300])}"
    if event.event == "torn":
        return "failure", f"a line of the events file is torn: {words}"
    kind: Kind = "stage" if event.event in ("began", "ended") else "note"
    return kind, event.event.replace("_", " ") + (f": {words}" if words else "")


def _pair(name: str, value: Any) -> str:
    """One detail of an event; what is none, false or empty is left to the record, but for the isolation."""
    words = one_line(name.replace("_", " "))
    if name == "isolated":
        return "isolated" if value else "NOT ISOLATED"
    if value is True or value is False or value is None or value == []:
        return words if value is True else ""
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return f"{words} {f'{value:,.6g}' if isinstance(value, float) else one_line(str(value)[:300])}"


def _sealed(run: Run) -> Told:
    if run.submission is None:
        return []
    faults: Told = [
        ("submission", f"{f.severity} fault {f.code}: {one_line(f.why)}", ()) for f in run.submission.faults
    ]
    return [("submission", submission_words(run.submission), ()), *faults]


def submission_words(submission: Submission) -> str:
    """`sealed: 3 files, sha256:…` or why there is none."""
    files = many(len(submission.files), "file")
    digest = submission.digest or "no digest, since nothing was sealed"
    return f"submission {submission.state}: {one_line(submission.why)} ({files}; {digest})"


def measurement_words(made: Measurement) -> str:
    """A measurement with n and interval, or why it has no value."""
    name = one_line(made.benchmark) + (f" (seed {made.seed})" if made.seed is not None else "")
    if made.value is None:
        return f"{name}: no value, {made.state}: {one_line(made.why)}"
    span = interval(made.value, made.n)
    bounds = f"95 % interval {percent(span[0])} to {percent(span[1])}" if span else "no interval: there are no items"
    return f"{name}: {percent(made.value)} %, n = {made.n:,}, {bounds}"


def _judged(run: Run) -> Told:
    return [
        ("finding", finding_words(judgement.judge, finding), finding.citations)
        for judgement in run.judgements
        for finding in judgement.findings
    ]


def finding_words(judge: str, finding: Finding) -> str:
    """A verdict with its reason and where to look."""
    at = [f"step {c.step}" if c.step is not None else place(c) for c in finding.citations]
    where = f" [{'; '.join(at)}]" if at else " [nothing cited]"
    return f"{one_line(finding.rule)} {finding.verdict}, says {one_line(judge)}: {one_line(finding.why)}{where}"


# --- facts ---


def _facts(run: Run, steps: int) -> Iterable[Fact]:
    spec, outcome, entrant = run.spec, run.outcome, run.spec.entrant
    missing = NO_OUTCOME.get(run.state, "no outcome was written")
    made_of = f"agent {entrant.agent}, {entrant.model or 'no model named'}, {entrant.effort or 'no effort named'}"
    yield Fact(name="entrant", text=one_line(f"{entrant.name} ({made_of}, account {entrant.account})"))
    yield Fact(name="base model", text=one_line(f"{spec.model.title} ({spec.model.parameters:,} parameters)"))
    yield Fact(name="run", text=f"{spec.id}, suite {spec.suite}, seed {spec.seed}, {run.state}")
    if outcome is None:
        yield Fact(name="ended", text=missing, mark="warning" if run.state == "lost" else "missing")
        yield Fact(name="time", text=f"none of {clock(spec.budget.hours * 3600)} known: {missing}", mark="missing")
    else:
        yield Fact(name="ended", text=_ended(outcome), mark="" if outcome.ended == "finished" else "warning")
        share = f" ({100 * ran / of:.0f} %)" if (ran := outcome.wall_seconds) and (of := outcome.limit_seconds) else ""
        yield Fact(name="time", text=f"{clock(outcome.wall_seconds)} of {clock(outcome.limit_seconds)}{share}")
        yield from _money(outcome, spec.budget.usd)
        yield Fact(name="steps", text=_steps(outcome, steps), mark="" if steps == outcome.steps else "warning")
    yield _box(run)
    if run.submission is None:
        yield Fact(name="submission", text="not sealed yet", mark="missing")
    else:
        mark: Literal["", "warning"] = "" if run.submission.state == "sealed" else "warning"
        yield Fact(name="submission", text=submission_words(run.submission).removeprefix("submission "), mark=mark)


def _ended(outcome: Outcome) -> str:
    code = "no exit code" if outcome.exit_code is None else f"exit code {outcome.exit_code}"
    signals = f"signals sent: {', '.join(outcome.signals)}" if outcome.signals else "no signal sent"
    return f"{IN_WORDS.get(outcome.ended, 'how it ended is not known')} ({code}; {signals}): {one_line(outcome.why)}"


def _money(outcome: Outcome, limit: float | None) -> Iterable[Fact]:
    text, known = bill.of_limit(outcome, limit)
    yield Fact(name="money", text=one_line(text), mark="" if known else "missing")
    if kinds := bill.by_kind(outcome):
        yield Fact(name="spent on", text=one_line(kinds))


def _steps(outcome: Outcome, steps: int) -> str:
    read = "" if steps == outcome.steps else f", of which {steps:,} could be read here"
    lost = f", {size(outcome.output_dropped_bytes)} beyond the cap not kept" if outcome.output_dropped_bytes else ""
    return f"{outcome.steps:,}{read}; {size(outcome.output_bytes)} of output{lost}"


def _box(run: Run) -> Fact:
    made = {"solve": run.outcome, **{f"measure {m.benchmark}": m for m in run.measurements}}
    kinds = {**made, **{f"judge {j.judge}": j for j in run.judgements}}
    known = {name: record for name, record in kinds.items() if record is not None}
    open_ones = [one_line(name) for name, record in known.items() if not record.isolated]
    if open_ones:
        text = f"NOT ISOLATED ({run.spec.sandbox}): programs could see the host in {', '.join(open_ones)}"
        return Fact(name="box", text=text, mark="warning")
    if not known:
        return Fact(name="box", text=f"{run.spec.sandbox}; nothing has run in it to the end", mark="missing")
    return Fact(name="box", text=f"isolated ({run.spec.sandbox}) in {', '.join(map(one_line, known))}")


# --- one screen ---


def lines(story: Story, width: int = 100) -> list[str]:
    """The story on one screen, plain text. What does not fit is counted, never left out in silence."""
    width = max(width, 40)
    told = [_short(story.title, width), "─" * min(width, len(story.title))]
    for fact in story.facts:
        told += _hang(f"{'!' if fact.mark == 'warning' else ' '} {fact.name:<11}", fact.text, width, 2)
    told.append("")
    weighty = sum(moment.kind in ("finding", "failure") for moment in story.timeline)
    rows = 2 if weighty <= 6 else 1
    for moment in _elide(list(story.timeline), SCREEN - len(told) - weighty * (rows - 1)):
        time = "" if moment.kind == "more" else clock(moment.seconds)
        number = f"step {moment.step:,} " if moment.step is not None else ""
        told += _hang(
            f"{time:>11}  {moment.stage:<8}",
            number + moment.text,
            width,
            rows if moment.kind in ("finding", "failure") else 1,
        )
    for judge, rate in story.rates.items():
        told += _hang(f"{judge:>20}", rate, width, 2)
    return told + (["  nothing has happened yet"] if not story.timeline else [])


def _hang(label: str, text: str, width: int, most: int) -> list[str]:
    room = width - len(label) - 1
    rows = wrap(text, room, break_on_hyphens=False) or [""]
    if len(rows) > most:
        rows = [*rows[: most - 1], _short(" ".join(rows[most - 1 :]), room)]
    return [f"{label if number == 0 else ' ' * len(label)} {row}".rstrip() for number, row in enumerate(rows)]


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _elide(moments: list[Moment], room: int) -> list[Moment]:
    """Steps go first, from the middle; then whatever else is in the middle."""
    steps = [at for at, moment in enumerate(moments) if moment.kind == "step"]
    if len(moments) > room:
        keep = max(4, room - 1 - (len(moments) - len(steps)))
        moments = _without(moments, steps[keep // 2 : len(steps) - (keep - keep // 2)], "step")
    if len(moments) > room:
        moments = _without(moments, list(range(room // 2, len(moments) - (room - room // 2 - 1))), "moment")
    return moments


def _without(moments: list[Moment], dropped: list[int], word: str) -> list[Moment]:
    if len(dropped) < 2:
        return moments
    gone, stage = set(dropped), moments[dropped[0]].stage
    more = Moment(seconds=None, stage=stage, kind="more", text=f"… {len(gone):,} more {word}s")
    return [
        more if at == dropped[0] else moment for at, moment in enumerate(moments) if at == dropped[0] or at not in gone
    ]
