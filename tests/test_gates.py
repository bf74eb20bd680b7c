"""Gates of a self-check: colours, margins, shares, what is stale; and that their counts agree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from prill import gates, slips
from prill.gates import Asked, SelfCheck
from prill.record import Fault, File
from prill.story import plain

STOPS = ["stop", "length", "timeout", "refused", "empty"]
ASKED = st.builds(
    Asked,
    item=st.sampled_from("abc"),
    stop=st.sampled_from(STOPS),
    seconds=st.none() | st.floats(0, 500),
    empty=st.booleans(),
    found=st.none() | st.booleans(),
    mark=st.none() | st.floats(0, 1),
    looping=st.booleans(),
    foreign=st.sampled_from([(), ("THAI",)]),
)


def made(*found: gates.Gate, requests: tuple[Asked, ...] = (), files: tuple[File, ...] = ()) -> SelfCheck:
    """A check of these gates."""
    nothing = gates.share(0, 0)
    return SelfCheck(
        digest="sha256:1", files=files, gates=found, asked=requests, shares=gates.shares(requests, {}),
        zero=gates.zero(requests, {}), score=nothing, settings={}, isolated=True, wall_seconds=1.0, number=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "state"), [(12.0, "green"), (270.0, "green"), (271.0, "amber"), (300.0, "amber"), (300.1, "red")]
)
def test_a_gate_near_its_limit_is_amber_and_over_it_red(seconds: float, state: str) -> None:
    """With less than a tenth of its limit left a gate warns; a figure that equals the limit is within it."""
    found = gates.startup(seconds, 300.0)
    assert found.state == state
    assert found.margin == pytest.approx(300.0 - seconds)


def test_a_server_that_ends_early_has_not_started_however_soon() -> None:
    """An early exit fails although the health page answered and the time was not over (U1)."""
    assert gates.startup(3.0, 300.0, exited=True, health=[200]).state == "red"


@pytest.mark.parametrize("generation", ["timeout", "hang", "error", "empty"])
@pytest.mark.parametrize("gate", [gates.startup, gates.healthy_after])
def test_health_alone_is_not_readiness(gate: object, generation: str) -> None:
    """A health page that answers 200 does not make up for a generation that does not finish (U2)."""
    assert callable(gate)
    assert gate(None, 300.0, health=[200], generation=generation).state == "red"
    assert gate(None, 300.0, health=[503, 200]).state == "green"
    assert gate(None, 300.0, health=[503]).state == "red"


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (Asked(item="", stop="stop", found=True), None),
        (Asked(item="", stop="stop"), None),
        (Asked(item="", stop="stop", found=False), "NO_ANSWER"),
        (Asked(item="", stop="stop", empty=True, found=False), "EMPTY"),
        (Asked(item="", stop="length", found=True), "TRUNCATED"),
        (Asked(item="", stop="timeout"), "OVER_TIME"),
        (Asked(item="", stop="stop", found=True, seconds=251.2), "OVER_TIME"),
        (Asked(item="", stop="refused"), "REFUSED"),
    ],
)
def test_well_formed_is_not_scored(reply: Asked, word: str | None) -> None:
    """A reply that scores nothing is warned of by what it is, and one that nobody could read is not (U3)."""
    assert gates.warning(reply, 250.0) == word
    assert gates.graded_request(reply, 250.0, 100).state == ("amber" if word else "green")


@given(st.lists(ASKED, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_request_that_fails_twice_counts_once(requests: list[Asked]) -> None:
    """The predicted zero share is that of requests, whatever and how much is wrong with each (U4); counts agree."""
    found, limits = gates.concurrent(requests, 250.0), dict.fromkeys("abc", 250.0)
    zero = gates.zero(requests, limits)
    told = gates.shares(requests, limits)
    assert found.state != "red"
    if found.state != "not run" and any(request.seconds is not None for request in requests):
        assert found.numbers["predicted_zero_share"] == zero.share
        assert found.numbers["over_limit"] == told["over time"].count
    assert zero.low is not None and zero.high is not None and zero.share is not None
    assert 0 <= zero.low <= zero.share <= zero.high <= 1
    assert max(told[name].count for name in ("cut off", "over time", "empty")) <= zero.count <= len(requests)


def test_where_only_the_slowest_is_known_it_is_one_of_those_cut_off() -> None:
    """One over the limit adds nothing to replies that were cut off, and is one where nothing else is wrong."""
    cut = [Asked(item="", stop="length")] * 31 + [Asked(item="", stop="stop")]
    assert gates.concurrent(cut, 250.0, 251.2).numbers["predicted_zero_share"] == 31 / 32
    assert gates.concurrent(cut[31:], 250.0, 251.2).numbers["predicted_zero_share"] == 1.0
    assert gates.concurrent(cut, 250.0, 251.2).numbers["over_limit"] == 1


@given(st.lists(st.sampled_from(["green", "amber", "red", "not run"]), max_size=12))
@settings(max_examples=40, deadline=None)
def test_n_of_m_is_counted_from_the_list_that_is_shown(colours: list[gates.State]) -> None:
    """The line with the counts says how many gates the lines above it show as passed, and of how many."""
    check = made(*(gates.Gate(name=f"g{at}", state=colour, why="because") for at, colour in enumerate(colours)))
    told = gates.lines(check)
    passed = sum(line.startswith(("green", "amber")) for line in told)
    assert f"{passed} of {len(colours)} gates passed" in "\n".join(told)
    assert (check.status == "failed") == (passed < len(colours) or not colours)


def test_faults_that_are_fatal_fail_and_warnings_warn() -> None:
    """A gate over files is red by what is fatal, amber by what is not, and names codes."""
    light, heavy = Fault(code="A", why="a", severity="warning"), Fault(code="B", why="b")
    assert gates.files("audit", [], "fine").state == "green"
    assert gates.files("audit", [light], "fine").state == "amber"
    found = gates.files("audit", [light, heavy], "fine")
    assert (found.state, found.margin, found.numbers["codes"]) == ("red", -1, ["A", "B"])


def test_a_later_edit_makes_a_pass_stale_and_is_named() -> None:
    """The last pass holds for its bytes alone; what was added, altered or removed since is listed (U5)."""
    before = tuple(File(path=path, bytes=1, sha256="0") for path in ("kept", "altered", "removed"))
    now = (before[0], File(path="altered", bytes=1, sha256="1"), File(path="added", bytes=1, sha256="0"))
    pass_ = made(gates.Gate(name="g", state="green", why=""), files=before)
    failed = made(gates.Gate(name="g", state="red", why=""), files=now)
    told = gates.standing([pass_, failed], "sha256:2", now)
    assert told["warning"] == "CHANGED_SINCE_LAST_PASS"
    assert told["changed"] == ["added", "altered", "removed"]
    assert gates.standing([pass_], "sha256:1", before)["warning"] is None
    assert gates.standing([failed], "sha256:1", now)["warning"] == "NEVER_PASSED"
    assert gates.standing([], "sha256:1", now)["why"] == "no self-check was made"


def test_no_more_checks_are_left_than_were_granted() -> None:
    """What is left is never below zero (U5)."""
    assert [gates.left(used, 4) for used in (0, 3, 4, 5)] == [4, 1, 0, 0]


@pytest.mark.parametrize(
    ("question", "text", "scripts"),
    [
        ("How many?", "The answer is twelve. α + β", ()),
        ("How many?", "ดังนั้นคำตอบคือสิบสอง", ("THAI",)),
        ("ทั้งหมดเท่าไร", "ดังนั้นคำตอบคือสิบสอง", ()),
        ("How many?", "所以答案是十二个苹果和三个梨子", ("CJK",)),
        ("How many?", "naïve café 所", ()),
        ("多少？", "The answer is twelve.", ()),
    ],
)
def test_a_script_that_the_question_does_not_use_is_seen(question: str, text: str, scripts: tuple[str, ...]) -> None:
    """Several letters of another script are told by its name; a stray letter, Latin and Greek are not."""
    assert slips.foreign(question, text) == scripts


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("and then " * 60, True),
        ("line\n" * 50, True),
        ("Every word here is said for the first time.", False),
        ("", False),
    ],
)
def test_a_reply_that_goes_round_in_circles_is_seen(text: str, loops: bool) -> None:
    """Much of the same is a loop, and ordinary prose is none."""
    assert slips.looping(text) == loops


@pytest.mark.parametrize("text", ["", " \n", "<think>on and on", "<think>done</think>\n", "<|im_end|>", "</think> "])
def test_reasoning_alone_is_an_empty_reply(text: str) -> None:
    """Blanks, reasoning that never closes and reasoning with nothing behind it say nothing."""
    assert slips.empty(text)
    assert not slips.empty("<think>so</think> 4")


@given(st.text(max_size=400), st.text(max_size=400))
@settings(max_examples=60, deadline=None)
def test_reading_replies_is_total(question: str, text: str) -> None:
    """Whatever a model writes, looking at it raises nothing and a check with it can be shown."""
    one = Asked(
        item="a", stop="stop", empty=slips.empty(text), looping=slips.looping(text),
        foreign=slips.foreign(question, text), ends=text,
    )  # fmt: skip
    told = gates.lines(made(gates.graded_request(one, 1, 1), requests=(one,)))
    assert [plain(line) for line in told] == told
    assert "\n" not in "".join(told)


def test_what_is_left_to_a_limit_is_told_in_words() -> None:
    """A margin is told with its limit and unit, OVER where it is crossed; without a limit nothing is."""
    assert gates.margin(gates.startup(12.0, 300.0)) == "288 of 300 seconds left"
    assert gates.margin(gates.startup(310.0, 300.0)) == "10 of 300 seconds OVER"
    assert gates.margin(gates.startup(None, None)) == gates.margin(gates.startup(12.0, None)) == ""
    none = gates.Gate(name="truncated", state="green", why="", value=0, limit=0, margin=0.0, unit="requests")
    assert gates.margin(none) == "at its limit"
    assert gates.margin(replace(none, value=3, margin=-3.0)) == "3 requests over"
