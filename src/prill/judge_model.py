"""Asks a judge model: the `Ask` that graders and judges are given. It goes to an OpenAI-compatible server.

One conversation for each inquiry, some at a time. A reply that cannot be read is asked for again, a few times; after
that the opinion is missing, which is never a verdict. Every reply is kept in a file, so that asking again after a crash
costs nothing twice, and so that anyone can read what the judge said. What it cost is counted here and nowhere else.
Not covered: a budget that stops in the middle; what is asked is known beforehand, so the caller decides then.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from prill.asking.kept import answers
from prill.asking.loop import Asking, Pace, ask
from prill.asking.loop import Question as Request
from prill.asking.reading import Answer
from prill.errors import DefinitionError, InfraError
from prill.outside import Wire
from prill.sockets import Inquiry, Opinion, Value
from prill.spec import Asked

URL, KEY, PRICE = "PRILL_JUDGE_URL", "PRILL_JUDGE_KEY", "PRILL_JUDGE_PRICE"


class Price(Value, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    tokens_in: float
    tokens_out: float


class JudgeModel:
    """See `Ask`."""

    def __init__(
        self,
        url: str,
        asked: Asked,
        file: Path,
        *,
        key: str | None = None,
        price: Price | None = None,
        request_seconds: float = 600.0,
        attempts: int = 4,
        wire: Wire = "chat",
        temperature: float | None = None,
        tell: Callable[[Pace], None] = lambda _: None,
    ) -> None:
        """`url` ends in `/v1`; `file` keeps the replies; `attempts` are for what the machine does wrong; `tell` hears
        how far each round of tries is. A `temperature` of `None` is the server's own."""
        self.model, self.asked, self.file, self.price = asked.model, asked, file, price
        self.effort, self.tell, self.temperature = asked.effort, tell, temperature
        self.how = Asking(
            url=url,
            model=asked.model,
            connections=asked.connections,
            request_seconds=request_seconds,
            attempts=attempts,
            key=key,
            wire=wire,
        )
        self.heard: dict[str, Answer] = {}

    def __call__(self, inquiries: Sequence[Inquiry], read: Callable[[str], Any]) -> list[Opinion]:
        """See `Ask`."""
        names = named(inquiries)
        found: dict[str, Opinion] = {}
        for round in range(1, self.asked.tries + 1):
            todo = {name: each for name, each in zip(names, inquiries, strict=True) if name not in found}
            said = self.once({f"{name}.{round}": each for name, each in todo.items()})
            for name in todo:
                opinion = heard(said[f"{name}.{round}"], read, round)
                if opinion.value is not None or round == self.asked.tries:
                    found[name] = opinion
        return [found[name] for name in names]

    def once(self, todo: dict[str, Inquiry]) -> dict[str, Answer]:
        """Each of them, asked once. A model that knows no effort is asked without."""
        if not todo:
            return {}
        while True:
            requests = [
                Request(id=name, body=body(each, self.asked, self.effort, self.temperature))
                for name, each in todo.items()
            ]
            try:
                settings = f"{self.model} {self.asked.max_tokens} {self.effort}"
                settings += "" if self.temperature is None else f" {self.temperature}"
                ask(requests, self.how, self.file, settings, self.tell)
                break
            except InfraError as error:
                if self.effort is None or "reasoning" not in str(error):
                    raise
                self.effort = None
        said = {answer.id: answer for answer in answers(self.file) if answer.id in todo}
        self.heard |= said
        return said

    def spent(self) -> dict[str, Any]:
        """See `Ask`."""
        heard = list(self.heard.values())
        tokens_in, tokens_out = total(each.tokens_in for each in heard), total(each.tokens_out for each in heard)
        usd, why = None, "no price is known for this model"
        if self.price is not None:
            why = "the server did not say how many tokens it took"
            if tokens_in is not None and tokens_out is not None:
                usd, why = (tokens_in * self.price.tokens_in + tokens_out * self.price.tokens_out) / 1e6, ""
        return {
            "model": self.model,
            "effort": self.effort,
            "effort_asked_for": self.asked.effort,
            "max_tokens": self.asked.max_tokens,
            "calls": sum(each.attempts for each in heard),
            "replies": len(heard),
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "usd": usd,
            "usd_why": why,
            "stops": dict(Counter(each.stop for each in heard)),
        }


def from_environment(asked: Asked, file: Path, tell: Callable[[Pace], None] = lambda _: None) -> JudgeModel:
    """The judge model that a benchmark names, on the server that the environment names; see `JudgeModel`.

    `PRILL_JUDGE_URL` ends in `/v1`; `PRILL_JUDGE_KEY` may be missing; `PRILL_JUDGE_PRICE` is `IN/OUT`, US dollars for a
    million tokens, and without it the price is unknown.
    """
    url, price = os.environ.get(URL, "").rstrip("/"), os.environ.get(PRICE, "")
    if not url.startswith(("http://", "https://")) or not url.endswith("/v1"):
        raise DefinitionError(
            f"{asked.model} must be asked: set {URL} to a server's root that ends in /v1 (now {url!r})"
        )
    try:
        tokens_in, tokens_out = (float(part) for part in price.split("/")) if price else (0.0, 0.0)
    except ValueError:
        raise DefinitionError(f"{PRICE} is {price!r}; it must be IN/OUT, such as 0.25/2.00") from None
    known = Price(tokens_in=tokens_in, tokens_out=tokens_out) if price else None
    return JudgeModel(url, asked, file, key=os.environ.get(KEY), price=known, tell=tell)


def total(counts: Iterable[int | None]) -> int | None:
    """Their sum; `None` as soon as one is not known."""
    found = list(counts)
    known = [count for count in found if count is not None]
    return sum(known) if len(known) == len(found) else None


def named(inquiries: Sequence[Inquiry]) -> list[str]:
    """A name for each inquiry that follows from what it says, so that a reply is found again."""
    seen: Counter[str] = Counter()
    names = []
    for each in inquiries:
        digest = hashlib.sha256(msgspec.json.encode(each)).hexdigest()[:32]
        names.append(f"{digest}.{seen[digest]}")
        seen[digest] += 1
    return names


def body(
    inquiry: Inquiry, asked: Asked, effort: str | None, temperature: float | None = None
) -> Callable[[], dict[str, Any]]:
    """What is sent, made when its turn comes."""

    def made() -> dict[str, Any]:
        system = [{"role": "system", "content": inquiry.system}] if inquiry.system is not None else []
        sent: dict[str, Any] = {"messages": [*system, {"role": "user", "content": inquiry.user}]}
        sent["max_completion_tokens"] = asked.max_tokens
        if temperature is not None:
            sent["temperature"] = temperature
        return sent if effort is None else {**sent, "reasoning_effort": effort}

    return made


def heard(answer: Answer, read: Callable[[str], Any], round: int) -> Opinion:
    """One reply. What did not end by itself says nothing, whatever it began to say."""
    value = read(answer.text) if answer.stop == "stop" else None
    why = "" if value is not None else answer.why or f"no verdict in the reply (stop: {answer.stop})"
    return Opinion(value=value, text=answer.text, why=f"{why}, after {round} tries" if why else "", tries=round)
