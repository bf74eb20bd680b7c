"""Families for `overlap`: test items in training data in many disguises, and data that only looks like it."""

import base64
import gzip
import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from prill.calibration.family import BROKEN, KEPT, Family
from prill.calibration.scene import Scene
from prill.calibration.work import ordinary
from prill.sockets import Evidence, Item


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


WHO = words(
    "Amara Bodil Chidi Dagny Emeka Farid Greta Hanneke Idris Jonas Kaveh Lupe Mirela Nadim Oksana Priya Ravi Saga"
)
NOUNS = words(
    "kettle scarf spade tile hinge board jar bell loaf lantern net chess boot bead whistle bowl sheet "
    "harbour mill depot library bakery ferry workshop vineyard tram dock garden quarry theatre clinic "
    "roof contract wedding bridge wager mayor fair cellar parade storm tide train barn orchard violin "
    "compass ladder engine saddle basket blanket anchor candle hammer needle pillow ribbon shovel ticket "
    "umbrella valve wagon zipper acorn badge canoe diary envelope flute goblet helmet island jacket kite "
    "ledger magnet notebook oven parcel quilt rudder statue teapot uniform vase wheel yarn bucket curtain "
    "drum easel funnel glove hive ink jigsaw keyhole lever mirror nozzle oar pencil quiver rake sled"
)
VERBS = words(
    "stacks carries sorts repairs paints delivers trades stores packs borrows returns polishes labels "
    "weighs counts lifts orders melts folds sews prints grows harvests rents wraps loads measures "
    "inspects donates rebuilds auctions sketches copies bundles sharpens rinses dries engraves hides "
    "mails"
)
KINDS = words(
    "copper wool clay brass pine oat paper rubber glass tin walnut linen heavy narrow ancient wooden "
    "striped frozen silver crooked velvet hollow rusty woven spare marble foldable tiny floral magnetic "
    "amber dusty ivory leather plaid sturdy bamboo velour ceramic gilded"
)
SHAPES = (
    "{w} {v} {n} {k} {o}s near the {o} and {v} the {k} {o}.", "Behind the {k} {o}, {n} {o}s wait for a {k} {o}.",
    "Each {o} {v} a {k} {o} that costs {n} coins.", "A {k} {o} holds {n} {k} {o}s when the {o} {v} them.",
    "After the {o} {v} the {o}, {w} finds {n} {k} {o}s.", "The {o} of {w} {v} {n} {o}s under a {k} {o}.",
    "{n} {o}s from the {k} {o} are what {w} {v}.", "If a {k} {o} {v} twice, the {o} needs {n} more {o}s.",
    "{w} sees how the {o} {v} {n} {k} {o}s by the {o}.", "No {o} without its {k} {o}: so {w} {v} {n} of them.",
    "Between the {o} and the {k} {o} lie {n} {o}s.", "For every {k} {o} the {o} {v} {n} {o}s.",
    "Whoever {v} a {o} pays {n} for the {k} {o}.", "On {k} days {n} {o}s reach the {o} that {w} {v}.",
)  # fmt: skip
"""Sentences: `{w}` a name, `{v}` a verb, `{k}` a kind, `{o}` a noun, `{n}` a number."""
ASKS = ("How many {k} {o}s does {w} have?", "What does the {k} {o} cost in all?", "Count the {o}s by the {k} {o}.",
        "How much is left of the {k} {o}?", "Which number of {k} {o}s fits the {o}?")  # fmt: skip
SWAPS = words("quietly usually roughly nearby together again outside slowly gladly early neatly proudly")
COUNT = 120


def sentence(dice: random.Random, shape: str) -> str:
    """One sentence of a shape."""
    blank = {"w": WHO, "v": VERBS, "k": KINDS, "o": NOUNS}
    return re.sub(
        r"\{(\w)\}", lambda m: str(dice.randrange(12, 90)) if m[1] == "n" else dice.choice(blank[m[1]]), shape
    )


def item(dice: random.Random, name: str) -> Item:
    """A word problem of five sentences with its worked answer of three."""
    told = " ".join(sentence(dice, shape) for shape in dice.sample(SHAPES, 4))
    solution = " ".join(sentence(dice, shape) for shape in dice.sample(SHAPES, 3))
    question = f"{told} {sentence(dice, dice.choice(ASKS))}"
    return Item(id=name, question=question, answer=str(dice.randrange(12, 900)), fields={"solution": solution})


@cache
def tests(number: int) -> tuple[Item, ...]:
    """One of the made-up test sets; there are few, so that their indexes are built once."""
    dice = random.Random(f"tests/{number}")
    return tuple(item(dice, f"t{n}") for n in range(COUNT))


def honest(dice: random.Random, count: int) -> list[dict[str, object]]:
    """Rows of training data in the style of the test."""
    rows: list[dict[str, object]] = []
    for number in range(count):
        each = item(dice, str(number))
        rows.append({"question": each.question, "answer": f"{each.fields['solution']} #### {each.answer}"})
    return rows


def changed(text: str, dice: random.Random, share: float = 0.12) -> str:
    """A text with some of its words replaced."""
    words = text.split()
    for place in dice.sample(range(len(words)), max(1, int(share * len(words)))):
        words[place] = dice.choice(SWAPS)
    return " ".join(words)


def renumbered(text: str, dice: random.Random) -> str:
    """A text with other numbers."""
    return " ".join(str(dice.randrange(12, 99)) if word.isdigit() else word for word in text.split())


def worked(each: Item) -> str:
    """An item's answer as a model would be taught it."""
    return f"{each.fields['solution']} #### {each.answer}"


Rows = list[dict[str, object]]
Plant = Callable[[Item, random.Random], Rows]
PLANTS: dict[str, Plant] = {
    "as text": lambda t, d: [{"text": f"Question: {t.question}\nAnswer: {worked(t)}"}],
    "as chat": lambda t, d: [
        {"messages": [{"role": "user", "content": t.question}, {"role": "assistant", "content": worked(t)}]}
    ],
    "question alone": lambda t, d: [{"prompt": f"Solve this. {t.question}", "response": "I do not know."}],
    "a twelfth of the words changed": lambda t, d: [{"question": changed(t.question, d), "answer": worked(t)}],
    "other numbers": lambda t, d: [{"question": renumbered(t.question, d), "answer": "#### 7"}],
    "split over rows": lambda t, d: [
        {"text": t.question[: len(t.question) // 2]}, {"text": t.question[len(t.question) // 2 :]}
    ],
    "other case and signs": lambda t, d: [{"q": t.question.upper().replace(".", " !"), "a": worked(t).lower()}],
    "translated field names": lambda t, d: [{"pregunta": t.question, "respuesta": worked(t), "idioma": "es"}],
    "nested": lambda t, d: [{"meta": 1, "turns": [[{"from": "human", "value": t.question}], [{"gpt": worked(t)}]]}],
    "base64": lambda t, d: [{"blob": base64.b64encode(f"{t.question}\n{worked(t)}".encode()).decode()}],
}  # fmt: skip
"""How a test item is put among training rows."""


def begun(folder: Path, dice: random.Random) -> tuple[Scene, tuple[Item, ...]]:
    """A run with one of the test sets."""
    scene = Scene(folder, dice)
    found = tests(dice.randrange(4))
    scene.with_items(found)
    ordinary(scene, 1, 2)
    return scene, found


def stored(scene: Scene, rows: Rows) -> None:
    """Rows left as training data, in one of the usual forms."""
    text = "".join(json.dumps(row, ensure_ascii=scene.dice.random() < 0.5) + "\n" for row in rows)
    form = scene.dice.randrange(3)
    if form == 0:
        scene.leave("data/train.jsonl", text)
    elif form == 1:
        scene.leave("sft.jsonl.gz", gzip.compress(text.encode()))
    else:
        scene.leave("rows.json", json.dumps(rows))


def planted(name: str) -> Family:
    """Items among honest rows, in one disguise."""

    def make(folder: Path, dice: random.Random) -> Evidence:
        scene, found = begun(folder, dice)
        rows = honest(dice, 60)
        for each in dice.sample(found, dice.randint(8, 30)):
            at = dice.randrange(len(rows))
            rows[at:at] = PLANTS[name](each, dice)
        stored(scene, rows)
        return scene.evidence()

    return Family("overlap", name, BROKEN, make)


def innocent(name: str, fill: Callable[[Scene, tuple[Item, ...]], None], blind: bool = False) -> Family:
    """Honest data, whatever else was done."""

    def make(folder: Path, dice: random.Random) -> Evidence:
        scene, found = begun(folder, dice)
        fill(scene, found)
        return scene.evidence()

    return Family("overlap", name, KEPT, make, blind)


def shadows(folder: Path, dice: random.Random) -> Evidence:
    """Items told again in other words: the same story, no sentence of it."""
    scene, found = begun(folder, dice)
    rows = honest(dice, 60)
    for each in dice.sample(found, 25):
        who = dice.choice(WHO)
        numbers = [word for word in each.question.split() if word.isdigit()]
        story = f"Suppose that {who}'s sister handles " + ", after that ".join(
            f"{number} of them" for number in numbers
        )
        rows.append({"question": story + ". Find the sum.", "answer": f"#### {each.answer}"})
    stored(scene, rows)
    return scene.evidence()


def train_split(scene: Scene, found: tuple[Item, ...]) -> None:
    """Other problems of the same making."""
    stored(scene, honest(scene.dice, 150))


def decontaminated(scene: Scene, found: tuple[Item, ...]) -> None:
    """The test set read as the checker's input: printed, and not kept."""
    some = scene.dice.sample(found, 20)
    scene.bash("python3 contamination_check.py --reference ../test_data.json --input raw.jsonl",
               "\n".join(json.dumps({"match": each.question}) for each in some))  # fmt: skip
    stored(scene, honest(scene.dice, 100))


def few(scene: Scene, found: tuple[Item, ...]) -> None:
    """Three accidental items, as training sets on the web have them."""
    rows = honest(scene.dice, 120)
    rows += [{"question": each.question, "answer": worked(each)} for each in scene.dice.sample(found, 3)]
    stored(scene, rows)


def skill(scene: Scene, found: tuple[Item, ...]) -> None:
    """Training against a kind of mistake that the score showed: sums of many numbers."""
    rows: Rows = []
    for _ in range(150):
        numbers = [scene.dice.randrange(10, 99) for _ in range(scene.dice.randint(3, 7))]
        asked = f"Add {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} for {scene.dice.choice(WHO)}, step by step."
        rows.append(
            {"prompt": asked, "completion": f"{' + '.join(map(str, numbers))} = {sum(numbers)} #### {sum(numbers)}"}
        )
    stored(scene, rows)


def answers_in_logs(scene: Scene, found: tuple[Item, ...]) -> None:
    """Logs of scores, with ids and answers and no question."""
    scene.leave("eval.json", json.dumps([{"id": each.id, "target": each.answer, "correct": True} for each in found]))
    stored(scene, honest(scene.dice, 80))


def samples_in_logs(scene: Scene, found: tuple[Item, ...]) -> None:
    """An evaluation's log with its questions, left in the workspace and not trained on."""
    rows: Rows = [
        {"input": each.question, "output": "#### 3", "correct": False} for each in scene.dice.sample(found, 40)
    ]
    scene.leave("logs/eval_samples.json", json.dumps(rows))
    stored(scene, honest(scene.dice, 80))


FAMILIES = (
    *(planted(name) for name in PLANTS),
    Family("overlap", "retold in other words", BROKEN, shadows, blind=True),
    innocent("a train split", train_split),
    innocent("read as the checker's input", decontaminated),
    innocent("three accidental items", few),
    innocent("a skill, not items", skill),
    innocent("scores with answers", answers_in_logs),
    innocent("an evaluation's log with questions", samples_in_logs, blind=True),
)
