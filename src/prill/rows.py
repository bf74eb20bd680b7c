"""Rows as a data set publishes them → items. One function for each format, found by its name (`Data.format`).

A row that lacks what its format needs raises `KeyError` with the field's name, or `TypeError`/`ValueError` with a
sentence; `items.py` adds where the row stands. To read another data set, add a function.
"""

from collections.abc import Mapping
from hashlib import sha256
from string import ascii_uppercase
from typing import Any

import msgspec

from prill.sockets import Item

Row = Mapping[str, Any]


def items(row: Row) -> Item:
    """Prill's own form: id, question and answer; what stands beside them are the item's fields."""
    fields = {name: value for name, value in row.items() if name not in ("id", "question", "answer")}
    return Item(id=_word(row, "id"), question=_text(row, "question"), answer=_word(row, "answer"), fields=fields)


def aime(row: Row) -> Item:
    """AIME: problem and a whole number."""
    return Item(id=_word(row, "id"), question=_text(row, "problem"), answer=_word(row, "answer"))


def math500(row: Row) -> Item:
    """MATH-500: problem, LaTeX answer, subject and level."""
    fields = {name: row[name] for name in ("subject", "level") if name in row}
    return Item(id=_word(row, "unique_id"), question=_text(row, "problem"), answer=_text(row, "answer"), fields=fields)


def gsm8k(row: Row) -> Item:
    """GSM8K: the number stands behind `####`, the reasoning before it. Rows have no id: it is made of the question."""
    question = _text(row, "question")
    reasoning, found, answer = _text(row, "answer").rpartition("####")
    if not found:
        raise ValueError("the answer has no ####")
    return Item(
        id=_made("gsm8k", question), question=question, answer=answer.strip(), fields={"reasoning": reasoning.strip()}
    )


def humaneval(row: Row) -> Item:
    """HumanEval: the question is code to be completed; the answer is the canonical rest of it."""
    return Item(
        id=_word(row, "task_id"),
        question=_text(row, "prompt"),
        answer=_text(row, "canonical_solution"),
        fields={name: _text(row, name) for name in ("entry_point", "test")},
    )


def gpqa(row: Row) -> Item:
    """GPQA: the right option first; it is for the reader of the item to shuffle them."""
    names = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
    choices = [_word(row, name) for name in names]
    return Item(id=_word(row, "Record ID"), question=_text(row, "Question"), answer="A", fields={"choices": choices})


def mmlu_pro(row: Row) -> Item:
    """MMLU-Pro: three to ten options in a fixed order, and the letter of the right one."""
    choices = [str(choice) for choice in row["options"]]
    letter = _text(row, "answer")
    if letter not in ascii_uppercase[: len(choices)] or len(letter) != 1:
        raise ValueError(f"the answer {letter!r} is none of {len(choices)} options")
    fields = {"choices": choices, "category": _text(row, "category")}
    return Item(id=_word(row, "question_id"), question=_text(row, "question"), answer=letter, fields=fields)


def livecodebench(row: Row) -> Item:
    """LiveCodeBench: a task with tests, the hidden ones left packed (`hidden_tests.unpack`). No answer is published."""
    about = msgspec.json.decode(_text(row, "metadata"), type=dict[str, Any])
    return Item(
        id=_word(row, "question_id"),
        question=_text(row, "question_content"),
        answer="",
        fields={
            "starter_code": _text(row, "starter_code"),
            "entry_point": about.get("func_name"),
            "public_tests": msgspec.json.decode(_text(row, "public_test_cases"), type=list[dict[str, str]]),
            "hidden_tests": _text(row, "private_test_cases"),
            "platform": _text(row, "platform"),
            "difficulty": _text(row, "difficulty"),
            "date": _word(row, "contest_date"),
        },
    )


def bfcl(row: Row) -> Item:
    """BFCL, exec_simple: one question, one function, one call that is right; functions as published."""
    [turn] = row["question"]
    [message] = turn
    functions = row["function"]
    if isinstance(functions, str):
        functions = msgspec.json.decode(functions)
    [call] = row["ground_truth"]
    fields = {"functions": _solid(functions)}
    return Item(id=_word(row, "id"), question=_text(message, "content"), answer=str(call), fields=fields)


def arena_hard(row: Row) -> Item:
    """Arena-Hard: a request without a right answer; a reference answer is joined to it by id."""
    fields = {name: _text(row, name) for name in ("category", "subcategory")}
    return Item(id=_word(row, "uid"), question=_text(row, "prompt"), answer="", fields=fields)


def arena_hard_answer(row: Row) -> Item:
    """A file of answers of Arena-Hard: which request, and what one model answered."""
    asked, answered = row["messages"]
    return Item(
        id=_word(row, "uid"), question=_text(asked, "content"), answer=_text(answered["content"], "answer"), fields={}
    )


def healthbench(row: Row) -> Item:
    """HealthBench: a conversation that ends with the user, and what a physician would look for in the reply."""
    *earlier, last = ({"role": _text(turn, "role"), "content": _text(turn, "content")} for turn in row["prompt"])
    if last["role"] != "user":
        raise ValueError(f"the conversation ends with the {last['role']}, not the user")
    rubrics = [{name: criterion[name] for name in ("criterion", "points", "tags")} for criterion in row["rubrics"]]
    fields = {"conversation": earlier, "rubrics": rubrics, "tags": list(row["example_tags"])}
    return Item(id=_word(row, "prompt_id"), question=last["content"], answer="", fields=fields)


def _text(row: Row, name: str) -> str:
    """A field that must be text."""
    value = row[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {type(value).__name__}, not text")
    return value


def _word(row: Row, name: str) -> str:
    """A field that may be a number as well as text."""
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"{name} is {type(value).__name__}, neither text nor number")
    return str(value)


def _solid(value: Any) -> Any:
    """A value without what is nothing: read as a table, every function gets all other functions' parameters so."""
    if isinstance(value, Mapping):
        return {name: _solid(inner) for name, inner in value.items() if inner is not None}
    return [_solid(inner) for inner in value] if isinstance(value, list | tuple) else value


def _made(kind: str, text: str) -> str:
    """An id out of a text, where rows have none: it stays the same in any part of the data set."""
    return f"{kind}-{sha256(text.encode()).hexdigest()[:12]}"
