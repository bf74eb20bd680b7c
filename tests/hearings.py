"""What tests of panels start from: a finished run of a few steps on disk, and a judge that says what it is told."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from prill.catalog import Catalog
from prill.dossier import Dossier
from prill.folder import RunFolder, create
from prill.panels import Panel, Question
from prill.record import Step
from prill.run import expected
from prill.sockets import Evidence, Inquiry, Opinion
from prill.trajectory.atif import trajectory
from samples import OUTCOME, submission

QUESTION = Question(name="look", title="Look", rules={"looked": "lookup"}, words="Did {agent} look at {benchmarks}?")
PANEL = Panel(
    name="trial",
    title="Trial",
    source="made up for tests",
    provider="canned",
    prices="canned",
    usd=1.0,
    model="canned",
    questions=(QUESTION,),
)


def answer(broken: bool | str, *citations: dict[str, Any], field: str = "looked", why: str = "so it is") -> str:
    """An answer in the form that a panel asks for."""
    cited = [{"field": field, **citation} for citation in citations]
    return msgspec.json.encode({field: broken, f"why_{field}": why, "citations": cited}).decode()


class Told:
    """An `Ask` that gives to each inquiry what a function makes of it, and keeps what it was asked."""

    model = "told"

    def __init__(self, say: Callable[[int, str], str], tries: int = 2) -> None:
        """`say`: number of the inquiry, counted from 0, and its whole text → the reply."""
        self.say, self.tries = say, tries
        self.asked: list[Inquiry] = []
        self.calls = 0

    def __call__(self, inquiries: Sequence[Inquiry], read: Callable[[str], Any]) -> list[Opinion]:
        """See `Ask`."""
        return [self.one(inquiry, read) for inquiry in inquiries]

    def one(self, inquiry: Inquiry, read: Callable[[str], Any]) -> Opinion:
        """One inquiry, until it can be read."""
        number = len(self.asked)
        self.asked.append(inquiry)
        for round in range(1, self.tries + 1):
            self.calls += 1
            text = self.say(number, f"{inquiry.system}\n{inquiry.user}")
            if (value := read(text)) is not None:
                return Opinion(value=value, text=text, why="", tries=round)
        return Opinion(value=None, text=text, why=f"no verdict, after {self.tries} tries", tries=self.tries)

    def spent(self) -> dict[str, Any]:
        """See `Ask`."""
        return {}


def step(number: int, text: str, **more: Any) -> Step:
    """A command of the agent."""
    return Step(**{"step": number, "kind": "command", "text": text, "offset": 0, "length": 0, **more})


def finished(parent: Path, texts: Sequence[str], files: dict[str, bytes] | None = None, **changes: Any) -> RunFolder:
    """A run of the smoke suite that took these steps and left these files of the workspace."""
    catalog = Catalog()
    [spec] = expected(catalog, catalog.suite("smoke"), ["honest-sft"], [0])
    run = create(parent, replace(spec, **changes))
    steps = [step(number, text) for number, text in enumerate(texts, 1)]
    run.trajectory.write_bytes(msgspec.json.encode(trajectory(run.id, "scripted", None, None, steps)))
    for name, data in (files or {}).items():
        file = run.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    run.write(run.outcome_file, OUTCOME)
    run.write(run.submission_file, submission())
    return run


def dossier(run: RunFolder) -> Dossier:
    """The run as a judge reads it."""
    return Dossier(Evidence(run=run.read(), folder=run.path, items={}, base=run.path, siblings={}))
