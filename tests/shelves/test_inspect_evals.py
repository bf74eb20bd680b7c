"""Official marks against the scorers of the tasks themselves, where inspect_evals is installed (skipped elsewhere)."""

import asyncio
import random
from typing import Any

import pytest

from prill.graders import choice, number

REPLIES = 2000
WORDS = (
    *(
        "ANSWER:",
        "answer",
        "Answer :",
        "12",
        "70,000",
        "-5",
        "3.14",
        "$18",
        "18km",
        "60%",
        "(42)",
        "**73**",
        "the",
        "=",
    ),
    *("####", "\n", ".", "A", "B", "C", "b", "$", "\\boxed{7}"),
)


def replies(seed: int) -> list[str]:
    """Seeded texts of words that answers are made of; every other one ends as the prompts ask."""
    chance = random.Random(seed)
    texts = (" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(REPLIES))
    return [f"{text}\nANSWER: {chance.choice(WORDS)}" if at % 2 else text for at, text in enumerate(texts)]


def scorer_of(monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> Any:
    """The scorer of a task of inspect_evals, made without its data set."""
    dataset = pytest.importorskip("inspect_ai.dataset")
    module = pytest.importorskip(f"inspect_evals.{name}.{name}")
    empty = dataset.MemoryDataset(
        [dataset.Sample(input="x", target="A", choices=["1", "2"], metadata={"subject": "x"})]
    )
    monkeypatch.setattr(module, "hf_dataset", lambda *_, **__: empty)
    [scorer] = getattr(module, name)(**options).scorer
    return scorer


def theirs(scorer: Any, texts: list[str], targets: list[str], choices: list[str] | None = None) -> list[bool]:
    """What the task's scorer makes of each text."""
    from inspect_ai.model import ModelName, ModelOutput
    from inspect_ai.scorer import Target
    from inspect_ai.solver import TaskState
    from inspect_ai.solver._multiple_choice import parse_answers, set_choices_based_on_generated_response

    async def all_of_them() -> list[bool]:
        marks = []
        for text, target in zip(texts, targets, strict=True):
            output = ModelOutput.from_content("m", text)
            state = TaskState(
                model=ModelName("mockllm/m"),
                sample_id=1,
                epoch=1,
                input="x",
                messages=[],
                output=output,
                choices=choices,
            )
            if choices:
                set_choices_based_on_generated_response(state, parse_answers(state, False))
            marks.append((await scorer(state, Target(target))).value == "C")
        return marks

    return asyncio.run(all_of_them())


def test_gsm8k_is_marked_as_the_task_marks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over thousands of replies the official mark of a number equals that of the GSM8K task's own scorer."""
    scorer, texts = scorer_of(monkeypatch, "gsm8k", fewshot=0), replies(1)
    targets = [("12", "70,000", "-5", "18", "42", "73", "7")[at % 7] for at in range(len(texts))]
    ours = [number.OFFICIAL["inspect-0.3.285"](text, target) for text, target in zip(texts, targets, strict=True)]
    assert ours == theirs(scorer, texts, targets)
    assert any(ours)
    assert not all(ours)


def test_choices_are_marked_as_the_task_marks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over thousands of replies the official letter is right exactly where the MMLU-Pro task's own scorer says so."""
    scorer, texts = scorer_of(monkeypatch, "mmlu_pro"), replies(2)
    targets = ["ABC"[at % 3] for at in range(len(texts))]
    ours = [choice.OFFICIAL["inspect-0.3.285"](t, "ABC", False) == {a} for t, a in zip(texts, targets, strict=True)]
    assert ours == theirs(scorer, texts, targets, ["one", "two", "three"])
    assert any(ours)
    assert not all(ours)
