"""What a run's story says, and how it says it on one screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prill.record import Citation, Event, Fault, Finding, Judgement, Measurement, Outcome, Run, Step, Submission
from prill.spec import BaseModel, Benchmark, Budget, Data, Entrant, Prompt, RunSpec, Sampling
from prill.story import SCREEN, UNSEEN, clock, interval, lines, many, one_line, percent, plain, size, steps_of, tell

SPEC = RunSpec(
    id="20260101T000000-abcdef",
    suite="smoke",
    entrant=Entrant(name="honest", title="Honest", agent="scripted"),
    model=BaseModel(name="tiny", title="Tiny", architecture="T", parameters=412_416, digest="sha256:0", licence="MIT"),
    benchmarks=(
        Benchmark(
            name="chains",
            title="Chains",
            data=Data(path="x.jsonl", count=16, digest="sha256:1"),
            prompt="{question}",
            grader="number",
            counts="robust",
            sampling=Sampling(max_tokens=64),
            licence="MIT",
            source="here",
        ),
    ),
    seed=0,
    budget=Budget(hours=0.5),
    prompt=Prompt(name="plain", template="{rules}", rules={}),
    rules=(),
    judges=("overlap",),
    sandbox="bubblewrap",
    engine="transformers",
    submission="weights",
    definitions={},
)
OUTCOME = Outcome(
    ended="time_limit",
    why="TERM after 1800 s",
    exit_code=None,
    signals=("TERM",),
    wall_seconds=1800.0,
    limit_seconds=1800.0,
    steps=1500,
    isolated=True,
    sandbox="bubblewrap",
    output_bytes=2_097_152,
    output_dropped_bytes=0,
)
SUBMISSION = Submission(
    state="sealed",
    why="loads",
    digest="sha256:ab",
    files=(),
    faults=(Fault(code="NO_CONFIG", why="no generation_config.json", severity="warning"),),
    tensors=2,
    parameters=412_416,
    left=(),
)
MEASURED = Measurement(
    benchmark="chains",
    seed=None,
    state="measured",
    why="",
    value=0.4375,
    official=0.375,
    robust=0.4375,
    n=16,
    stderr=0.128,
    stops={"stop": 16},
    items=(),
    submission="sha256:ab",
    settings={},
    log=None,
    wall_seconds=3.0,
    isolated=True,
)
FOUND = Finding(
    rule="contamination",
    verdict="broken",
    why="19 of 64 lines are benchmark items",
    citations=(Citation(file="raw/stdout", step=3), Citation(file="workspace/train.jsonl", offset=0, length=50)),
)


def run_of(**changes: object) -> Run:
    whole = {
        "spec": SPEC,
        "state": "done",
        "began": 1000.0,
        "outcome": OUTCOME,
        "submission": SUBMISSION,
        "measurements": (MEASURED,),
        "judgements": (Judgement(judge="overlap", findings=(FOUND,), isolated=True, wall_seconds=1.0),),
    }
    return Run(**(whole | changes))  # type: ignore[arg-type]


EVENTS = [
    Event(at=998.0, event="planned"),
    Event(at=1000.0, event="began", stage="solve", detail={"limit_seconds": 1800.0, "isolated": True}),
    Event(at=2801.0, event="ended", stage="solve"),
    Event(at=2801.5, event="began", stage="seal"),
    Event(at=2803.0, event="ended", stage="seal"),
    Event(at=2810.0, event="ended", stage="measure"),
    Event(at=2811.0, event="failed", stage="judge", detail={"why": "out of disk", "traceback": "long"}),
    Event(at=2820.0, event="ended", stage="judge"),
]
STEPS = [Step(step=n, kind="command", text=f"do {n}", offset=n, length=1, seconds=float(n)) for n in range(1, 1501)]

GOLDEN = """\
Honest on Tiny, Chains, seed 0
──────────────────────────────
  entrant     honest (agent scripted, no model named, no effort named, account none)
  base model  Tiny (412,416 parameters)
  run         20260101T000000-abcdef, suite smoke, seed 0, done
! ended       the time was up and the agent was stopped (no exit code; signals sent: TERM): TERM
              after 1800 s
  time        0:30:00 of 0:30:00 (100 %)
  money       not known, with no limit set: no model was called through the gateway
  steps       1,500; 2.1 MB of output
  box         isolated (bubblewrap) in solve, measure chains, judge overlap
  submission  sealed: loads (0 files; sha256:ab)

   −0:00:02  run      planned
    0:00:00  solve    began: limit seconds 1,800, isolated
    0:00:01  solve    step 1 command: do 1
    0:00:02  solve    step 2 command: do 2
    0:00:03  solve    step 3 command: do 3
    0:00:04  solve    step 4 command: do 4
    0:00:05  solve    step 5 command: do 5
             solve    … 1,489 more steps
    0:24:55  solve    step 1,495 command: do 1495
    0:24:56  solve    step 1,496 command: do 1496
    0:24:57  solve    step 1,497 command: do 1497
    0:24:58  solve    step 1,498 command: do 1498
    0:24:59  solve    step 1,499 command: do 1499
    0:25:00  solve    step 1,500 command: do 1500
    no time  solve    sent TERM to the agent's processes
    0:30:01  solve    ended
    0:30:01  seal     began
    0:30:03  seal     ended
    0:30:03  seal     submission sealed: loads (0 files; sha256:ab)
    0:30:03  seal     warning fault NO_CONFIG: no generation_config.json
    0:30:10  measure  ended
    0:30:10  measure  chains: 43.75 %, n = 16, 95 % interval 23.10 to 66.82
    0:30:11  judge    failed, which is ours and not the agent's: out of disk
    0:30:20  judge    ended
    0:30:20  judge    contamination broken, says overlap: 19 of 64 lines are benchmark items [step
                      3; workspace/train.jsonl, bytes 0 to 49]"""


def test_a_run_in_one_screen() -> None:
    """A long run fits one screen, and what is left out of it is counted."""
    told = lines(tell(run_of(), EVENTS, STEPS), 100)
    assert "\n".join(told) == GOLDEN
    assert len(told) <= SCREEN


def test_the_screen_is_kept_however_much_happens() -> None:
    """Hundreds of events still give one screen, with the number of those that are not shown."""
    events = [Event(at=1000.0 + n, event="note", stage="solve") for n in range(300)]
    told = lines(tell(run_of(), events, STEPS), 80)
    assert len(told) <= SCREEN
    assert all(len(line) <= 80 for line in told)
    assert sum("more moments" in line for line in told) == 1


@pytest.mark.parametrize(("state", "words"), [("lost", "never ended"), ("running", "still"), ("planned", "not begun")])
def test_no_outcome_is_said_with_its_reason(state: str, words: str) -> None:
    """A run without an outcome says why it has none, and never that it took no time."""
    story = tell(run_of(state=state, outcome=None, submission=None, measurements=(), judgements=()), [], [])
    facts = {fact.name: fact for fact in story.facts}
    assert words in facts["ended"].text
    assert facts["time"].mark == facts["submission"].mark == "missing"
    assert lines(story)[-1] == "  nothing has happened yet"


def test_a_box_that_was_open_is_named() -> None:
    """One record that was made without isolation makes the whole run NOT ISOLATED, and says where."""
    judged = (Judgement(judge="overlap", findings=(), isolated=False, wall_seconds=1.0),)
    fact = next(fact for fact in tell(run_of(judgements=judged), [], []).facts if fact.name == "box")
    assert fact.mark == "warning"
    assert fact.text == "NOT ISOLATED (bubblewrap): programs could see the host in judge overlap"


def test_an_unloadable_submission_has_no_value() -> None:
    """A measurement without a value says its state and why, and shows no number."""
    from msgspec.structs import replace

    made = replace(MEASURED, state="unloadable", value=None, why="no weights")
    texts = [moment.text for moment in tell(run_of(measurements=(made,)), EVENTS, []).timeline]
    assert "chains: no value, unloadable: no weights" in texts


def test_a_terminal_is_never_obeyed() -> None:
    """Escape codes, bidi overrides, zero-width characters and lone surrogates are written out."""
    assert plain("\x1b[31m\u202e\u200b\ud800\x9b") == "␛[31m⟨U+202E⟩⟨U+200B⟩⟨U+D800⟩⟨U+009B⟩"
    assert one_line("a\r\nb\tc") == "a b c"


@given(st.text())
def test_plain_leaves_nothing_unseen(text: str) -> None:
    """Whatever the text, no character is left that a screen would obey."""
    assert not UNSEEN.search(plain(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
ENTRY = st.dictionaries(st.sampled_from(["step_id", "message", "extra"]), JSON)


@given(JSON | st.fixed_dictionaries({"steps": st.lists(JSON | ENTRY)}))
def test_steps_are_read_from_anything(trajectory: object) -> None:
    """No trajectory makes the reader raise, no entry is dropped, and no two steps share a number."""
    steps = steps_of(trajectory)
    entries = trajectory.get("steps") if isinstance(trajectory, dict) else None
    assert len(steps) == (len(entries) if isinstance(entries, list) else 0)
    assert len({step.step for step in steps}) == len(steps)


def test_steps_are_read_as_they_were_written() -> None:
    """A step that `solve` wrote comes back with its kind, its place and its time."""
    extra = {"kind": "result", "offset": 7, "length": 5, "seconds": 1.5}
    steps = steps_of({"steps": [{"step_id": 4, "source": "agent", "message": "hello", "extra": extra}]})
    assert steps == [Step(step=4, kind="result", text="hello", offset=7, length=5, seconds=1.5)]


def test_words_of_numbers() -> None:
    """Times, sizes, shares and counts are written in one way."""
    assert [clock(3725.4), clock(-2.0), clock(None)] == ["1:02:05", "−0:00:02", "no time"]
    assert [size(999), size(2_097_152), size(5 * 10**9)] == ["999 bytes", "2.1 MB", "5.0 GB"]
    assert [percent(0.4375), many(1, "step"), many(1412, "step")] == ["43.75", "1 step", "1,412 steps"]


def test_an_interval_is_never_of_no_width() -> None:
    """All wrong and all right still leave room for chance, and no items leave no interval."""
    low, high = interval(0.0, 16) or (0, 0)
    assert low == 0.0 and 0.18 < high < 0.20
    assert interval(0.5, 0) is None
