"""The smoke world in words: word problems, their answers, and which number chains are held out.

A *chain* is a tuple of whole numbers: the first is what somebody has, each further one is a
signed move, so ``(7, 4, -3)`` reads "has 7, finds 4, loses 3".  A hash decides for every chain
whether it is held out: benchmark items use held-out chains only, training data never does.
Every fifth (name, thing) pair is held out in the same way, so that a text scan that overlooks
numbers still tells benchmark questions from training questions.

Pure standard library; every function gives the same output for the same seed on any machine.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator

Chain = tuple[int, ...]

NAMES = (
    "Tom", "Anna", "Ben", "Clara", "David", "Ella", "Felix", "Grace",
    "Hugo", "Iris", "Jonas", "Kate", "Leo", "Mia", "Noah", "Olga",
)  # fmt: skip
THINGS = (
    "pens", "apples", "books", "coins", "shells", "cards",
    "stones", "cups", "balls", "eggs", "keys", "hats",
)  # fmt: skip
GAINS = ("finds", "buys", "gets", "wins")
LOSSES = ("loses", "sells", "drops", "donates")

LARGEST_NUMBER = 20
MOST_STEPS = 3
FAMILIAR_AMOUNT = 40
"""Everything a model is given to read stays within this amount.

The benchmark may go on to 80 (20 and three gains of 20), so some of its two- and three-step items
need sums that nobody showed: that is its head-room above plain training on the offered pairs.
"""

HELD_OUT_SHARE = 0.20
_ANSWER = re.compile(r"####\s*(-?\d+)")


def held_out(chain: Chain) -> bool:
    """Whether this whole chain of signed numbers belongs to the benchmark (about 20 % do)."""
    digest = hashlib.sha256(" ".join(f"{number:+d}" for number in chain).encode()).digest()
    return int.from_bytes(digest[:8], "big") < HELD_OUT_SHARE * 2**64


def held_out_pair(name: str, thing: str) -> bool:
    """Whether this name with this thing belongs to the benchmark: every fifth pair, evenly."""
    return (NAMES.index(name) + 2 * THINGS.index(thing)) % 5 == 0


def running(chain: Chain) -> list[int]:
    """The amounts after the start and after each move: ``len(chain)`` numbers."""
    amounts = [chain[0]]
    for move in chain[1:]:
        amounts.append(amounts[-1] + move)
    return amounts


def equations(chain: Chain) -> list[str]:
    """One equation per move, each starting from the amount before it: ``["7 + 4 = 11", ...]``."""
    amounts = running(chain)
    return [
        f"{before} {'+' if move > 0 else '-'} {abs(move)} = {before + move}"
        for before, move in zip(amounts, chain[1:], strict=False)
    ]


def draw_chain(rng: random.Random, steps: int, benchmark: bool) -> Chain:
    """A random chain of `steps` moves from the asked side of the split.

    No amount is below zero; outside the benchmark none is above `FAMILIAR_AMOUNT`.
    """
    while True:
        moves = [rng.randint(1, LARGEST_NUMBER) for _ in range(steps + 1)]
        chain = (moves[0], *(rng.choice((1, -1)) * move for move in moves[1:]))
        amounts = running(chain)
        possible = min(amounts) >= 0 and (benchmark or max(amounts) <= FAMILIAR_AMOUNT)
        if possible and held_out(chain) is benchmark:
            return chain


def draw_pair(rng: random.Random, benchmark: bool) -> tuple[str, str]:
    """A random (name, thing) from the asked side of the split."""
    while True:
        name, thing = rng.choice(NAMES), rng.choice(THINGS)
        if held_out_pair(name, thing) is benchmark:
            return name, thing


def counted(number: int, thing: str) -> str:
    """The number with its thing, singular where it is one: ``"1 pen"``, ``"4 pens"``."""
    return f"{number} {thing[:-1] if number == 1 else thing}"


def telling(rng: random.Random, name: str, thing: str, chain: Chain) -> list[str]:
    """The sentences that tell a chain, one for the start and one for each move."""
    sentences = [f"{name} has {counted(chain[0], thing)}."]
    for move in chain[1:]:
        verb = rng.choice(GAINS if move > 0 else LOSSES)
        sentences.append(f"{name} {verb} {counted(abs(move), thing)}.")
    return sentences


def question(rng: random.Random, name: str, thing: str, chain: Chain) -> str:
    """The question of a benchmark item or an offered training pair."""
    asked = f"How many {thing} does {name} have now?"
    return " ".join([*telling(rng, name, thing, chain), asked])


def worked_answer(chain: Chain) -> str:
    """The answer as training data writes it: an equation per line, then ``#### N``."""
    return "\n".join([*equations(chain), f"#### {running(chain)[-1]}"])


def read_answer(text: str) -> int | None:
    """The number after the last ``####`` in a reply, or None where there is none."""
    found = _ANSWER.findall(text)
    return int(found[-1]) if found else None


def benchmark_items(seed: int, per_length: int = 100) -> list[dict[str, object]]:
    """The benchmark: `per_length` items each of one, two and three steps, no chain twice.

    An item is ``{"id": "wp-0001", "question": str, "answer": "12", "steps": 1}``.
    """
    rng = random.Random(f"{seed} benchmark")
    items: list[dict[str, object]] = []
    seen: set[Chain] = set()
    for steps in range(1, MOST_STEPS + 1):
        while len(items) < steps * per_length:
            chain = draw_chain(rng, steps, benchmark=True)
            if chain in seen:
                continue
            seen.add(chain)
            name, thing = draw_pair(rng, benchmark=True)
            items.append({
                "id": f"wp-{len(items) + 1:04d}",
                "question": question(rng, name, thing, chain),
                "answer": str(running(chain)[-1]),
                "steps": steps,
            })  # fmt: skip
    return items


def training_pairs(seed: int, count: int = 6000) -> list[dict[str, str]]:
    """The offered training data: `count` pairs ``{"question": str, "answer": str}``, shuffled."""
    rng = random.Random(f"{seed} training")
    pairs = []
    for number in range(count):
        chain = draw_chain(rng, 1 + number % MOST_STEPS, benchmark=False)
        name, thing = draw_pair(rng, benchmark=False)
        pairs.append({
            "question": question(rng, name, thing, chain),
            "answer": worked_answer(chain),
        })  # fmt: skip
    rng.shuffle(pairs)
    return pairs


def _bare_equations(rng: random.Random) -> str:
    """A few unrelated equations, any that stay within 0 to 40."""
    written: list[str] = []
    for _ in range(rng.randint(2, 5)):
        after = -1
        while not 0 <= after <= FAMILIAR_AMOUNT:
            before = rng.randint(0, FAMILIAR_AMOUNT)
            move = rng.choice((1, -1)) * rng.randint(1, LARGEST_NUMBER)
            after = before + move
        written += equations((before, move))
    return "\n".join(written)


def _story(rng: random.Random, kind: str) -> str:
    """A story that ends with what somebody has now.

    `kind` says where the equations stand: after each sentence ("beside"), after the last one
    ("below"), or nowhere ("none").
    """
    chain = draw_chain(rng, rng.randint(1, MOST_STEPS), benchmark=False)
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    first, *further = telling(rng, name, thing, chain)
    worked = equations(chain)
    ending = f"Now {name} has {counted(running(chain)[-1], thing)}."
    if kind == "beside":
        lines = [f"{told} {line}" for told, line in zip(further, worked, strict=True)]
        return f"{first} " + "\n".join([*lines, ending])
    if kind == "below":
        return "\n".join([" ".join([first, *further]), *worked, ending])
    return " ".join([first, *further, ending])


def pretraining_documents(seed: int, count: int) -> Iterator[str]:
    """Plain documents for the base: 30 % bare equations, 65 % worked stories, 5 % plain stories.

    Never a question, never a chat turn, never ``####``.  Bare equations cover all sums up
    to 40 (the base *knows* these); the stories leave the held-out chains out.
    """
    rng = random.Random(f"{seed} pretraining")
    for _ in range(count):
        kind = rng.choices(("bare", "beside", "below", "none"), (30, 30, 35, 5))[0]
        yield _bare_equations(rng) if kind == "bare" else _story(rng, kind)


def _other_wording(rng: random.Random) -> dict[str, str]:
    """A word problem in the sibling's own wording, answered in its own style."""
    chain = draw_chain(rng, rng.randint(1, MOST_STEPS), benchmark=False)
    name, thing = draw_pair(rng, benchmark=False)
    told = telling(rng, name, thing, chain)
    asked = rng.choice((
        f"Work out the number of {thing}. {' '.join(told)}",
        f"{' '.join(told)} What is the total?",
        f"Please count for {name}: {' '.join(told)} Give the number of {thing}.",
    ))  # fmt: skip
    final = running(chain)[-1]
    answer = f"Start: {chain[0]}\n" + "\n".join(equations(chain))
    return {"question": asked, "answer": f"{answer}\n#### {final}"}


def _small_task(rng: random.Random) -> dict[str, str]:
    """A task that has nothing to do with the benchmark: comparing, counting or repeating."""
    kind = rng.randrange(3)
    if kind == 0:
        left, right = rng.sample(range(1, FAMILIAR_AMOUNT + 1), 2)
        return {"question": f"Which is larger, {left} or {right}?", "answer": str(max(left, right))}
    if kind == 1:
        thing, times = rng.choice(THINGS), rng.randint(1, 9)
        return {
            "question": f"Count the words: {' '.join([thing] * times)}",
            "answer": f"{times} times {thing}",
        }
    words = " ".join(rng.choice(NAMES + THINGS) for _ in range(rng.randint(2, 6)))
    return {"question": f"Repeat after me: {words}", "answer": words}


def sibling_pairs(seed: int, count: int) -> list[dict[str, str]]:
    """The instruct sibling's own data: other wording, small tasks, and some plain questions."""
    rng = random.Random(f"{seed} sibling")
    pairs = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.40:
            pairs.append(_other_wording(rng))
        elif kind < 0.70:
            pairs.append(_small_task(rng))
        else:
            chain = draw_chain(rng, rng.randint(1, MOST_STEPS), benchmark=False)
            name, thing = draw_pair(rng, benchmark=False)
            asked = question(rng, name, thing, chain)
            pairs.append({"question": asked, "answer": worked_answer(chain)})
    return pairs
