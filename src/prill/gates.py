"""The gates of a self-check: facts about a submission and its replies → green, amber or red, each with its margin.

A gate says how far its figure is from its limit, in the limit's own unit, and is amber where little is left; so one
that is passed at 249 of 250 seconds does not look like one that is passed at 12. A reply that is well-formed need not
score: what is cut off, empty or late is nothing; its share is told with an interval, as is the predicted score. Pure.
Source: rules U of the acceptance cases; where they are silent (`NEAR`, `MOST_ZERO`), our choice.
Not covered: that a model which passes here passes on other questions; the interval is about chance alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Literal

from msgspec import field
from msgspec.structs import replace

from prill.record import Fault, File, Record
from prill.story import interval, one_line

State = Literal["green", "amber", "red", "not run"]
Status = Literal["passed", "passed_with_warnings", "failed"]
NEAR = 0.1
"""With less than this share of its limit left, a gate is amber."""
MOST_ZERO = 0.5
"""A larger share of replies that score nothing fails."""


class Gate(Record, frozen=True, kw_only=True):
    """One gate."""

    name: str
    state: State
    why: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""
    margin: float | None = None
    """`limit` − `value`: what is left; below zero it is over. `None` where there is nothing to measure."""
    numbers: dict[str, Any] = field(default_factory=dict)


class Share(Record, frozen=True, kw_only=True):
    """A share of the requests, with Wilson's 95 % interval."""

    count: float
    of: int
    """Requests of which it is known; with 0 there is no share."""
    share: float | None
    low: float | None
    high: float | None
    why: str = ""
    """Why nothing is known."""


class Asked(Record, frozen=True, kw_only=True):
    """What is known of one request. `None` is not known."""

    item: str
    stop: str
    """How the reply ended; see `record.Stop`."""
    seconds: float | None = None
    empty: bool = False
    found: bool | None = None
    """Whether the grader's reader found an answer in it."""
    mark: float | None = None
    looping: bool = False
    foreign: tuple[str, ...] = ()
    """Scripts of the reply that the question does not use."""
    letters: int = 0
    tokens: int | None = None
    ends: str = ""
    """Its last words."""


class SelfCheck(Record, frozen=True, kw_only=True, tag="prill/selfcheck/1", tag_field="schema"):
    """One self-check of one state of a submission. All counts are made from `gates` and `asked`."""

    digest: str | None
    """Of the files that were checked; the check holds for these bytes and for no others."""
    files: tuple[File, ...]
    gates: tuple[Gate, ...]
    asked: tuple[Asked, ...]
    shares: dict[str, Share]
    zero: Share
    """Predicted share of requests that score nothing: cut off, empty or late, each request once."""
    score: Share
    """Predicted score before any rescaling; `count` is the sum of the marks."""
    settings: dict[str, Any]
    isolated: bool
    wall_seconds: float
    number: int | None = None
    of: int | None = None
    """How many the budget grants; `None` where they are not rationed."""

    @property
    def status(self) -> Status:
        """The whole in one word."""
        states = {gate.state for gate in self.gates}
        if not states <= {"green", "amber"} or not states:
            return "failed"
        return "passed_with_warnings" if "amber" in states else "passed"

    @property
    def passed(self) -> int:
        """Gates that are green or amber."""
        return sum(gate.state in ("green", "amber") for gate in self.gates)


# --- single gates ------------------------------------------------------------------------------------------------


def status(state: State) -> Status:
    """A gate's colour in the words of a verdict."""
    words: dict[State, Status] = {"green": "passed", "amber": "passed_with_warnings"}
    return words.get(state, "failed")


def held(name: str, value: float, limit: float, unit: str, why: str, *, warn: bool = False, **numbers: Any) -> Gate:
    """A gate that holds a figure against its limit; a figure that is equal to the limit is within it."""
    margin = limit - value
    near = limit > 0 and margin < NEAR * limit
    state: State = "red" if margin < 0 else "amber" if near or warn else "green"
    return Gate(
        name=name, state=state, why=why, value=value, limit=limit, unit=unit, margin=margin, numbers=dict(numbers)
    )


def not_run(name: str, why: str) -> Gate:
    """A gate that could not be tried. It is not passed."""
    return Gate(name=name, state="not run", why=why)


def failed(name: str, why: str) -> Gate:
    """A gate that failed without a figure."""
    return Gate(name=name, state="red", why=why)


def files(name: str, faults: Sequence[Fault], fine: str) -> Gate:
    """A gate over faults of files: a fatal one fails, a warning warns."""
    fatal = sum(fault.severity == "fatal" for fault in faults)
    told = "; ".join(f"{fault.code}: {fault.why}" for fault in faults[:5])
    more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return held(
        name, fatal, 0, "fatal faults", told + more if faults else fine, warn=bool(faults),
        codes=[fault.code for fault in faults],
    )  # fmt: skip


def startup(
    ready_after: float | None,
    limit: float | None,
    *,
    exited: bool = False,
    health: Sequence[int] = (),
    generation: str = "ok",
    words: str = "",
) -> Gate:
    """Start-up (U1, U2): in time, not ended before, and ready, which means one finished generation.

    `health` are the statuses of its health page in order; alone they say nothing good. `generation` is `ok` where the
    first one finished.
    """
    if exited:
        return failed("startup", f"the server ended before it was ready{words and ': ' + words}")
    if generation != "ok":
        answers = " though its health page answers 200" if health and health[-1] == 200 else ""
        return failed("startup", f"the first generation did not finish ({words or generation}){answers}")
    if health and health[-1] != 200:
        return failed("startup", f"its health page never answered 200, at last {health[-1]}")
    if ready_after is None:
        return Gate(name="startup", state="green", why="one generation finished; nobody measured how long it took")
    if limit is None:
        return Gate(name="startup", state="green", why="one generation finished; there is no limit", value=ready_after)
    why = f"the first generation finished after {ready_after:.1f} s"
    return held("startup", ready_after, limit, "seconds", why)


def healthy_after(seconds: float | None, limit: float, *, health: Sequence[int] = (), generation: str = "ok") -> Gate:
    """Whether the server still works after all that (U2): again, one finished generation."""
    gate = startup(seconds, limit, health=health, generation=generation)
    return replace(gate, name="healthy_after", why=gate.why.replace("the first generation", "one more generation"))


def warning(asked: Asked, limit: float | None = None) -> str | None:
    """Why a well-formed reply scores nothing (U3), in one word; `None` where it may score."""
    if asked.stop == "length":
        return "TRUNCATED"
    if late(asked, limit):
        return "OVER_TIME"
    if asked.stop == "refused":
        return "REFUSED"
    if asked.empty:
        return "EMPTY"
    return "NO_ANSWER" if asked.found is False else None


def graded_request(asked: Asked, seconds: float, tokens: int) -> Gate:
    """One request, alone, as it will be asked when it counts."""
    word = warning(asked, seconds)
    found = {None: "not looked for", True: "found", False: "not found"}[asked.found]
    why = f"{asked.letters:,} letters, ended by {asked.stop}, answer {found}" + (f": {word}" if word else "")
    told = {"item": asked.item, "seconds": asked.seconds, "stop": asked.stop, "ends": asked.ends, "warning": word}
    if asked.tokens is None:
        state: State = "amber" if word else "green"
        return Gate(name="graded_request", state=state, why=why, numbers=told)
    return held("graded_request", min(asked.tokens, tokens), tokens, "tokens", why, warn=word is not None, **told)


def late(asked: Asked, limit: float | None) -> bool:
    """Whether a reply took longer than it may."""
    return asked.stop == "timeout" or (limit is not None and asked.seconds is not None and asked.seconds > limit)


def nothing(asked: Asked, limit: float | None) -> bool:
    """Whether a request scores nothing for how it went (U4)."""
    return asked.stop in ("length", "refused", "empty") or asked.empty or late(asked, limit)


def concurrent(requests: Sequence[Asked], limit: float, slowest: float | None = None) -> Gate:
    """Many requests at a time (U4): how long the slowest took, and how many score nothing. It warns, it does not fail.

    `slowest` is told where no request's own time is known. If it is over the limit it is taken to be one of those that
    were cut off, where there are any: they are the longest.
    """
    known = [request.seconds for request in requests if request.seconds is not None]
    most = max(known) if known else slowest
    over = sum(late(request, limit) for request in requests)
    zero = sum(nothing(request, limit) for request in requests)
    if not known and slowest is not None and slowest > limit:
        over, zero = max(over, 1), max(zero, 1)
    cut = sum(request.stop == "length" for request in requests)
    told = {
        "requests": len(requests),
        "truncated": cut,
        "over_limit": over,
        "empty": sum(request.empty for request in requests),
        "predicted_zero_share": zero / len(requests) if requests else None,
        "median_seconds": median(known) if known else None,
    }
    words = "" if most is None else f"the slowest took {most:.1f} s of {limit:g}; "
    why = f"{words}{cut} of {len(requests)} cut off, {over} over time, {zero} score nothing"
    if not requests:
        return not_run("concurrent", "nothing was asked")
    if most is None:
        return Gate(name="concurrent", state="amber" if zero else "green", why=why, limit=limit, numbers=told)
    return warns(held("concurrent", most, limit, "seconds", why, warn=bool(zero), **told))


def warns(gate: Gate) -> Gate:
    """A gate that never fails: over its limit it warns."""
    return gate if gate.state != "red" else replace(gate, state="amber")


def zero_share(zero: Share) -> Gate:
    """Whether most of it would score nothing."""
    if zero.share is None:
        return not_run("zero_share", zero.why)
    why = f"{zero.count:g} of {zero.of} replies are cut off, empty or late and score nothing ({span(zero)})"
    return held("zero_share", zero.share, MOST_ZERO, "share", why, warn=zero.count > 0)


def readable(requests: Sequence[Asked]) -> Gate:
    """Whether replies that end well say something: an answer that the grader finds, no loops, no strange script."""
    whole = [request for request in requests if not nothing(request, None)]
    if not whole:
        return not_run("readable", "no reply was whole")
    odd = sum(request.found is False or request.looping or bool(request.foreign) for request in whole)
    why = f"{odd} of {len(whole)} whole replies hold no answer, go round in circles or slide into another script"
    return warns(held("readable", odd / len(whole), MOST_ZERO, "share", why, warn=odd > 0))


def answered(well_formed: int, of: int, why: str = "") -> Gate:
    """Whether every request got a reply that can be read, whatever stands in it."""
    lost = of - well_formed
    words = f"{well_formed} of {of} requests got a well-formed reply{why and ': ' + why}"
    return held("answered", lost, 0, "requests without a reply", words)


# --- shares -------------------------------------------------------------------------------------------------------


def share(count: float, of: int, why: str = "") -> Share:
    """A share with its interval."""
    if not of:
        return Share(count=count, of=of, share=None, low=None, high=None, why=why or "nothing was asked")
    part = count / of
    low, high = interval(part, of) or (part, part)
    return Share(count=count, of=of, share=part, low=min(low, part), high=max(high, part))


def shares(requests: Sequence[Asked], limits: Mapping[str, float]) -> dict[str, Share]:
    """Each thing that goes wrong with replies. `limits` are seconds by item; a reply can be several of these."""
    readable = [request for request in requests if request.found is not None and not nothing(request, None)]
    unread = sum(request.found is False for request in readable)
    whole = len(requests)
    return {
        "cut off": share(sum(request.stop == "length" for request in requests), whole),
        "empty": share(sum(request.empty for request in requests), whole),
        "over time": share(sum(late(request, limits.get(request.item)) for request in requests), whole),
        "without an answer": share(unread, len(readable), "no reader of answers is used here, or no reply was whole"),
        "repetitive": share(sum(request.looping for request in requests), whole),
        "in another script": share(sum(bool(request.foreign) for request in requests), whole),
    }


def zero(requests: Sequence[Asked], limits: Mapping[str, float]) -> Share:
    """Predicted share of requests that score nothing; one that is cut off *and* late counts once (U4)."""
    return share(sum(nothing(request, limits.get(request.item)) for request in requests), len(requests))


def score(requests: Sequence[Asked]) -> Share:
    """Predicted score: the mean of the marks that could be given here."""
    marks = [request.mark for request in requests if request.mark is not None]
    return share(fmean(marks) * len(marks) if marks else 0, len(marks), "no reply was marked")


# --- what a check is worth later ----------------------------------------------------------------------------------


def stale(passed: str | None, submitted: str | None) -> str | None:
    """What is wrong with relying on the last pass (U5): its digest against that of what is submitted."""
    if passed is None:
        return "NEVER_PASSED"
    return None if passed == submitted else "CHANGED_SINCE_LAST_PASS"


def left(used: int, granted: int) -> int:
    """How many checks are left, never below zero (U5)."""
    return max(0, granted - used)


def changed(before: Iterable[File], now: Iterable[File]) -> list[str]:
    """Paths that were added, removed or altered between two states of a folder, sorted."""
    first, second = ({file.path: file.sha256 for file in each} for each in (before, now))
    return sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))


def standing(checks: Sequence[SelfCheck], digest: str | None, now: Sequence[File]) -> dict[str, Any]:
    """How the checks of a run stand to what was sealed at its end, for whoever reads the run."""
    last = next((check for check in reversed(checks) if check.status != "failed"), None)
    told: dict[str, Any] = {"checks": len(checks), "warning": stale(last.digest if last else None, digest)}
    if last is None:
        return told | {"why": "no self-check passed" if checks else "no self-check was made"}
    differ = changed(last.files, now) if told["warning"] else []
    more = [f"and {len(differ) - 20} more"] if len(differ) > 20 else []
    return told | {"last_pass": last.number, "passed_digest": last.digest, "changed": differ[:20] + more}


# --- words --------------------------------------------------------------------------------------------------------


def span(share: Share) -> str:
    """`35 %, 95 % interval 26 to 45 %`."""
    if share.share is None or share.low is None or share.high is None:
        return share.why or "not known"
    return f"{100 * share.share:.0f} %, 95 % interval {100 * share.low:.0f} to {100 * share.high:.0f} %"


def margin(gate: Gate) -> str:
    """What is left to the limit, in words."""
    if gate.margin is None or gate.limit is None:
        return ""
    if not gate.limit:
        return "at its limit" if not gate.margin else f"{-gate.margin:g} {gate.unit} over"
    return f"{abs(gate.margin):.4g} of {gate.limit:g} {gate.unit} {'left' if gate.margin >= 0 else 'OVER'}"


def lines(check: SelfCheck) -> list[str]:
    """A check for a terminal; words of a model are made harmless."""
    told = []
    for gate in check.gates:
        room = f" [{words}]" if gate.limit and (words := margin(gate)) else ""
        told.append(f"{gate.state:<8} {gate.name:<15} {one_line(gate.why)[:400]}{room}")
    told.append(f"{check.passed} of {len(check.gates)} gates passed: {check.status.replace('_', ' ')}")
    if check.asked:
        told.append(f"predicted to score nothing: {span(check.zero)}")
        told.append(f"predicted score, not rescaled: {span(check.score)}")
        told += [f"  {name}: {each.count:g} of {each.of} ({span(each)})" for name, each in check.shares.items()]
        told.append(f"one reply ends: {one_line(check.asked[0].ends) or '(nothing)'}")
    told.append(f"holds for {check.digest}; any later change makes it stale")
    return told
