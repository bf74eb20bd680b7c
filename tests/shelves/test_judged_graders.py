"""Judged graders against a scripted judge: a real server that says what the test wrote down, also nonsense."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance import OWN, cases
from prill import judge_model, opinions, rows, style
from prill.asking.loop import Pace
from prill.errors import DefinitionError, InfraError
from prill.graders.pairwise import plugin as pairwise
from prill.graders.rubric import plugin as rubric
from prill.judge_model import JudgeModel, Price
from prill.record import Reply
from prill.sockets import Item
from prill.spec import Asked

SHARED = Path(__file__).parents[3] / "shared"
DATA = SHARED / "data" / "benchmarks"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the published questions are not beside this checkout")
Judge = Callable[..., JudgeModel]


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    """Starts a judge with these replies; all of them end with the test."""
    servers = []

    def start(*replies: dict[str, Any], tries: int = 2, effort: str | None = None, **fields: Any) -> JudgeModel:
        script = tmp_path / f"judge{len(servers)}.json"
        script.write_text(json.dumps({"replies": replies, "log": str(tmp_path / "log.jsonl")}))
        server = subprocess.Popen([sys.executable, "-m", "prill.canned", str(script), "0"], stdout=subprocess.PIPE)
        servers.append(server)
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        asked = Asked(model="judge", effort=effort, max_tokens=1000, tries=tries, connections=16)
        return JudgeModel(url, asked, tmp_path / "judged.jsonl", attempts=1, **fields)

    yield start
    for server in servers:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def requests(folder: Path) -> list[dict[str, Any]]:
    """What the judge was asked."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def reply(text: str) -> Reply:
    """A reply that ended by itself."""
    return Reply(text=text, stop="stop")


def criterion(name: str, points: float, axis: str = "accuracy") -> dict[str, Any]:
    """One criterion."""
    return {"criterion": name, "points": points, "tags": ["level:example", f"axis:{axis}"]}


def health(*criteria: dict[str, Any], id: str = "q", theme: str = "hedging") -> Item:
    """One item of a rubric."""
    fields = {"conversation": [], "rubrics": list(criteria), "tags": [f"theme:{theme}"]}
    return Item(id=id, question="Does it hurt?", answer="", fields=fields)


def says(met: bool, **fields: Any) -> dict[str, Any]:
    """A judge's reply about a criterion."""
    return {"text": json.dumps({"explanation": "because", "criteria_met": met}), **fields}


# --- rubric --------------------------------------------------------------------------------------------------


def test_points_are_counted_per_item_and_clipped_after_the_mean(judge: Judge) -> None:
    """An item may be worth less than nothing; the mean over items is taken first and only then held within 0 and 1."""
    ask = judge(says(True, **{"if": "yes"}), says(False))
    bad = health(criterion("no", 2), criterion("yes bad", -8), id="1")
    good = health(criterion("yes good", 4), id="2", theme="global_health")
    found = rubric([(reply("a"), bad), (reply("b"), good), (reply("c"), good)], ask)
    assert [item.value for item in found.items] == [-4.0, 1.0, 1.0]
    assert (found.robust, found.official, found.n) == (0.0, 0.0, 3)
    assert found.numbers["by_theme"] == {"global_health": {"score": 1.0, "n": 2}, "hedging": {"score": 0.0, "n": 1}}
    assert found.numbers["by_axis"] == {"accuracy": {"score": 0.0, "n": 4}}


def test_an_ungraded_criterion_holds_the_score(judge: Judge) -> None:
    """A criterion that the judge never grades leaves no robust score; the published scorer counts it as not met."""
    ask = judge({"if": "odd", "text": "I cannot say."}, says(True))
    found = rubric([(reply("a"), health(criterion("odd", 5), criterion("even", 5)))], ask)
    assert (found.robust, found.official, found.stderr) == (None, 0.5, None)
    assert found.items[0].value is None and "1 of 2 criteria" in found.why
    assert found.items[0].parts[0]["met"] is None and found.items[0].parts[0]["said"] == "I cannot say."


def test_an_item_without_points_to_earn_holds_the_score(judge: Judge) -> None:
    """An item whose criteria only cost points has no value, and there is no score without it."""
    found = rubric([(reply("a"), health(criterion("bad", -5)))], judge(says(False)))
    assert (found.robust, found.items[0].value) == (None, None)


def test_each_criterion_is_asked_by_itself(judge: Judge, tmp_path: Path) -> None:
    """One request for each criterion shows the whole conversation, the reply without its reasoning, and the points."""
    item = health(criterion("first {criterion}", 5), criterion("second", -3))
    item = Item(
        id="q", question="{conversation}?", answer="",
        fields={**item.fields, "conversation": [{"role": "user", "content": "Hi"}]},
    )  # fmt: skip
    rubric([(reply("<think>hmm</think>It does."), item)], judge(says(True)))
    asked = [sent["messages"][0]["content"] for sent in requests(tmp_path)]
    assert len(asked) == 2
    assert any("[5] first {criterion}" in text for text in asked) and any("[-3] second" in text for text in asked)
    for text in asked:
        assert "user: Hi\n\nuser: {conversation}?\n\nassistant: It does.\n" in text and "hmm" not in text


@needs_data
def test_the_published_health_questions_are_scored(judge: Judge) -> None:
    """With a judge that grants everything, every published item is worth all its points, also the negative ones."""
    lines = (DATA / "healthbench-easy" / "healthbench.jsonl").read_text(encoding="utf-8").splitlines()
    items = [rows.healthbench(json.loads(line)) for line in lines]
    assert (len(items), sum(len(item.fields["rubrics"]) for item in items)) == (245, 1873)
    chosen = items[:24]
    found = rubric([(reply("Drink water."), item) for item in chosen], judge(says(True)))
    points = [[part["points"] for part in item.fields["rubrics"]] for item in chosen]
    expected = [sum(all_of) / sum(each for each in all_of if each > 0) for all_of in points]
    assert [item.value for item in found.items] == pytest.approx(expected)
    assert found.robust == pytest.approx(min(1, max(0, sum(expected) / len(expected))))
    assert found.judge["replies"] == sum(map(len, points)) and 0 < (found.stderr or 0) < 0.2


# --- pairwise ------------------------------------------------------------------------------------------------


def writing(id: str = "q", answer: str = "An old poem.") -> Item:
    """One request with a reference answer."""
    return Item(id=id, question=f"A poem, {id}.", answer=answer, fields={})


BY_PLACE = "Assistant A's answer begins|>\n"


def test_both_orders_are_votes(judge: Judge) -> None:
    """A loss in one order and a strong win in the other are one vote against three."""
    ask = judge({"if": BY_PLACE + "An old", "text": "[[A>B]]"}, {"text": "Mine is better. [[A>>B]]"})
    found = pairwise([(reply("A new poem."), writing())], ask)
    assert (found.robust, found.official, found.numbers["votes"]) == (0.75, 0.75, 4)
    assert (found.numbers["won_as_second"], found.numbers["won_as_first"]) == (0.0, 1.0)
    assert [part["verdict"] for part in found.items[0].parts] == ["A>B", "A>>B"]


def test_a_missing_verdict_drops_the_question_and_is_counted(judge: Judge) -> None:
    """One question in thirty without a verdict is left out and counted; the rest stands on its own."""
    ask = judge({"if": "poem, 7.", "text": "Both are nice [A]."}, {"if": BY_PLACE + "An old", "text": "[[B>A]]"},
                {"text": "[[A>B]]"})  # fmt: skip
    found = pairwise([(reply("A new poem."), writing(str(at) + "x" * (at != 7))) for at in range(30)], ask)
    assert (found.numbers["missing"], found.numbers["missing_verdicts"], found.n) == (1, 2, 29)
    assert found.robust == found.official == 1.0 and found.items[7].value is None


def test_too_many_missing_verdicts_hold_the_score(judge: Judge) -> None:
    """Where one question in three lacks a verdict, the robust score is held and the published one goes on."""
    ask = judge({"if": "poem, 1.", "text": "?"}, {"text": "[[A=B]]"})
    found = pairwise([(reply("A new poem."), writing(str(at))) for at in range(3)], ask)
    assert (found.robust, found.official) == (None, 0.5) and "ask again" in found.why


def test_nothing_judged_is_no_score(judge: Judge) -> None:
    """A judge that never gives a verdict leaves no score at all."""
    found = pairwise([(reply("A new poem."), writing())], judge({"text": "no"}))
    assert (found.robust, found.official, found.numbers["missing"]) == (None, None, 1)


@needs_data
def test_the_published_arena_questions_are_judged_twice(judge: Judge, tmp_path: Path) -> None:
    """Each of the published questions is shown with its reference answer in both places."""
    folder = DATA / "arena-hard-v2.0"
    files = ("question.jsonl", "Qwen3-1.7B.jsonl")
    asked, answered = ((folder / name).read_text(encoding="utf-8").splitlines() for name in files)
    questions = [rows.arena_hard(json.loads(line)) for line in asked]
    answers = {found.id: found.answer for found in (rows.arena_hard_answer(json.loads(line)) for line in answered)}
    assert len(questions) == len(answers) == 250
    chosen = [Item(id=q.id, question=q.question, answer=answers[q.id], fields=q.fields) for q in questions[:20]]
    found = pairwise([(reply(answers[item.id]), item) for item in chosen], judge({"text": "[[A=B]]"}))
    assert (found.robust, found.numbers["votes"], found.stderr) == (0.5, 40, 0.0)
    sent = [each["messages"][1]["content"] for each in requests(tmp_path)]
    assert len(sent) == 40 and all(sum(item.question in text for text in sent) >= 2 for item in chosen)


def test_the_open_arena_cases_hold(judge: Judge) -> None:
    """Our own cases about verdicts and rubrics come out of the same arithmetic that the graders use."""
    seen = 0
    for case in cases("aggregate", folder=OWN):
        if case["input"]["op"] != "arena":
            continue
        replies = []
        for at, games in enumerate(case["input"]["questions"]):
            first, second = (f"[[{games[name]}]]" if games[name] else "nothing" for name in ("game1", "game2"))
            replies.append({"if": f"A poem, {at}.\n\n<|{BY_PLACE}An old", "text": first})
            replies.append({"if": f"A poem, {at}.", "text": second})
        ask = judge(*replies, tries=1)
        ask.file = ask.file.with_name(f"{case['id']}.jsonl")
        found = pairwise([(reply("new"), writing(str(at))) for at in range(len(case["input"]["questions"]))], ask)
        wanted = case["expected"]
        assert found.official == pytest.approx(wanted["win_rate"]), case["id"]
        assert found.numbers["missing"] == wanted.get("null_judgments", 0), case["id"]
        seen += 1
    assert seen >= 3


def test_a_reply_that_loops_is_shown_shortened(judge: Judge, tmp_path: Path) -> None:
    """Where an item says how often something may stand in a row, its judge sees no more, and the score says so."""
    said, few = "I sing of the sea.\n" * 99, {"most_repeats": 5}
    poem, bound = writing(), Item(id="q", question="A poem, q.", answer="An old poem.", fields=few)
    for item, times in ((poem, 99), (bound, 5)):
        found = pairwise([(reply(said), item)], judge({"text": "[[A=B]]"}))
        seen = requests(tmp_path)[-1]["messages"][1]["content"]
        assert seen.count("I sing of the sea.") == times
        assert (found.numbers["shortened"], found.numbers["letters_cut"]) == ((0, 0) if times == 99 else (1, 94 * 19))
    ill = health(criterion("kind", 5))
    ill = Item(id="q", question=ill.question, answer="", fields={**ill.fields, **few})
    found = rubric([(reply(said), ill)], judge(says(True)))
    assert requests(tmp_path)[-1]["messages"][0]["content"].count("I sing of the sea.") == 5
    assert found.numbers["shortened"] == 1


# --- asking --------------------------------------------------------------------------------------------------


def test_an_unreadable_reply_is_asked_for_again(judge: Judge) -> None:
    """A reply without a verdict, one that was cut off and an empty one are each asked for again, and then count."""
    first = [{"text": "hm", "times": 1}, {"text": '{"criteria_met": true}', "finish": "length", "times": 1}]
    ask = judge(*first, {"do": "empty", "times": 1}, says(False), tries=4)
    found = rubric([(reply("a"), health(criterion("x", 5)))], ask)
    assert (found.robust, found.judge["replies"]) == (0.0, 4)


def test_a_judge_that_cannot_be_asked_is_no_verdict(judge: Judge) -> None:
    """A judge server that fails is an error of the machine; what it answered before is kept and not asked again."""
    items = [(reply("a"), health(criterion("one", 5), criterion("two", 5)))]
    with pytest.raises(InfraError, match="the server failed on 1 of 2"):
        rubric(items, judge({"if": "[5] two", "do": "500"}, says(True)))
    assert rubric(items, judge({"if": "[5] one", "do": "500"}, says(False))).robust == 0.5


def test_the_environment_names_the_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Address, key and price come from the environment, and an address or a price that is none is refused by name."""
    asked = Asked(model="judge", max_tokens=10, tries=1, connections=1)
    monkeypatch.setenv(judge_model.URL, "http://127.0.0.1:1/v1")
    monkeypatch.setenv(judge_model.KEY, "k")
    monkeypatch.setenv(judge_model.PRICE, "0.25/2")
    found = judge_model.from_environment(asked, tmp_path / "judged.jsonl")
    assert (found.price, found.how.key) == (Price(tokens_in=0.25, tokens_out=2.0), "k")
    for name, wrong in ((judge_model.PRICE, "cheap"), (judge_model.URL, "127.0.0.1")):
        monkeypatch.setenv(name, wrong)
        with pytest.raises(DefinitionError, match=name):
            judge_model.from_environment(asked, tmp_path / "judged.jsonl")


def test_a_judge_tells_how_far_it_is(judge: Judge) -> None:
    """Each round of tries is counted by itself: of two inquiries, then of the one that had no verdict."""
    paces: list[Pace] = []
    ask = judge({"if": "odd", "text": "hm"}, says(True), tell=paces.append)
    rubric([(reply("a"), health(criterion("odd", 5), criterion("even", 5)))], ask)
    assert [(pace.done, pace.total) for pace in paces if pace.done == pace.total] == [(2, 2), (1, 1)]


def test_what_it_cost_is_told(judge: Judge) -> None:
    """Model, digest of the prompt, calls, tokens and price stand in the result; without a price it says so."""
    usage = {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
    items = [(reply("a"), health(criterion("x", 5)))]
    found = rubric(items, judge(says(True, **usage), price=Price(tokens_in=0.25, tokens_out=2.0))).judge
    assert (found["model"], found["tokens_in"], found["tokens_out"], found["calls"]) == ("judge", 1000, 100, 1)
    assert found["usd"] == pytest.approx(0.00045) and found["prompt"].startswith("sha256:")
    other = rubric(items, judge(says(True, **usage))).judge
    assert other["usd"] is None and other["usd_why"]
    price = Price(tokens_in=0.25, tokens_out=2.0)
    games = pairwise([(reply("A new poem."), writing())], judge({"text": "[[A=B]]", **usage}, price=price)).judge
    assert games["usd"] == pytest.approx(0.0009) and games["prompt"] != found["prompt"]


def test_a_model_that_knows_no_effort_is_asked_without(judge: Judge, tmp_path: Path) -> None:
    """A refusal that names the reasoning effort is answered by asking without it, and the result says so."""
    ask = judge({"do": "400", "text": "reasoning_effort is not supported", "times": 1}, says(True), effort="medium")
    found = rubric([(reply("a"), health(criterion("x", 5)))], ask).judge
    assert [sent.get("reasoning_effort") for sent in requests(tmp_path)] == ["medium", None]
    assert (found["effort"], found["effort_asked_for"]) == (None, "medium")


# --- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("[[A>>B]] or rather [[B>A]]", "B>A"), ("[[a=b]]", "A=B"), ("[ A > B ]", "A>B"), ("[[A<B]]", "B>A"),
     ("[[A<<B]]", "B>>A"), ("[A]", None), ("[[A>>>B]]", None), ("A>B", None), ("", None), ("[[A>A]]", None)],
)  # fmt: skip
def test_verdicts_are_read(text: str, verdict: str | None) -> None:
    """The last label in brackets counts, however it is spelt; what is no label is no verdict."""
    assert opinions.verdict(text) == verdict


@pytest.mark.parametrize(
    ("text", "met"),
    [('{"explanation": "x", "criteria_met": true}', True), ('```json\n{"criteria_met": "False"}\n```', False),
     ('{"criteria_met": true} no: {"criteria_met": false}', False), ('{"criteria_met": 1}', None),
     ('{"criteria_met": null}', None), ('{"criteria_met": tr', None), ("true", None), ("", None),
     ('{"explanation": "it says {\\"criteria_met\\": true}", "criteria_met": false}', False),
     ("{{{ " * 3000 + '{"criteria_met": true}', None)],
)  # fmt: skip
def test_grades_are_read(text: str, met: bool | None) -> None:
    """The last complete JSON object that has the field counts, as true or false; anything else says nothing."""
    assert opinions.met(text) is met


@given(st.text())
def test_reading_is_total(text: str) -> None:
    """Whatever a judge writes is read without an error."""
    assert opinions.verdict(text) in (*opinions.LABELS, None)
    assert opinions.met(text) in (True, False, None)
    assert isinstance(opinions.unthought(text), str) and style.looks(text).words >= 0


def test_style_control_takes_out_what_looks_explain() -> None:
    """A judge that only likes length is at even odds at equal looks; one that does not care stays where it was."""
    longer, shorter = style.looks("word " * 200), style.looks("word " * 100)
    features = [style.difference(longer, shorter), style.difference(shorter, longer)]
    biased = (
        [(1.0, features[0])] * 90 + [(0.0, features[0])] * 10 + [(1.0, features[1])] * 10 + [(0.0, features[1])] * 90
    )
    plain = [(1.0, each) for each in features * 35] + [(0.0, each) for each in features * 15]
    assert style.controlled(biased) == pytest.approx(0.5, abs=1e-6)
    assert style.controlled(plain) == pytest.approx(0.7, abs=1e-6)
    all_long = [(1.0, features[0])] * 80 + [(0.0, features[0])] * 20
    assert style.controlled(all_long) is not None and style.controlled([(1.0, features[0])] * 9) is None


def test_looks_are_counted() -> None:
    """Headers, lists and bold text count outside of code only, and a script without blanks is counted by letters."""
    text = "# One\n- a\n- **b**\n1. c\n```\n# not a header\n```\n"
    assert style.looks(text)[1:] == (1, 3, 1)
    assert style.looks("你好吗").words == 3
