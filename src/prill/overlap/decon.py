"""The public contamination checker's method, so that results can be compared with it; prill's own is `search.py`.

It is the *simple* method of AI2's decon as PostTrainBench ships it: question 5-grams, answer 3-grams and passage
4-grams of cl100k_base tokens, each weighed by idf, in clusters that grow from sampled hits.
Not covered: what it cannot see, which is much: a question without its answer, chat rows, changed numbers.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prill.errors import DefinitionError, InfraError

BLANKED = re.compile("[!'\"#$%&()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~“”‘’—]")
NAMES = {
    "question": ("question", "input", "prompt", "text", "content"),
    "answer": ("answer", "output", "response", "target"),
    "passage": ("passage", "context", "document"),
}
TEXTS = ("text", "content", "input", "prompt", "question")
SIZES = {"question": 5, "answer": 3, "passage": 4}
STEP = 10
MOST_MISSES = 11
THRESHOLD = 0.8
LEAST_QUESTION = (THRESHOLD - 0.3) / 0.7
SHORT_ANSWER, SHORT_WINDOW, LONG_WINDOW = 3, 50, 100
PASSAGE_MISSES = 2
WEIGHTS = {
    ("question", "answer", "passage"): (0.70, 0.20, 0.10),
    ("question", "answer"): (0.75, 0.25),
    ("question", "passage"): (0.85, 0.15),
    ("question",): (1.0,),
}
INFORMATIVE_GRAMS, INFORMATIVE_TOKENS = 20, 4
FEWEST_WORDS, FEWEST_TOKENS = 4, 20
Encode = Callable[[str], list[int]]
Gram = tuple[int, ...]


def vocabulary(file: Path | None) -> Encode:
    """cl100k_base: by tiktoken where it has it, or from a file of ranks, as tiktoken publishes it."""
    try:
        import tiktoken
    except ImportError:
        raise InfraError("--decon-compatible needs the tiktoken package; pip install 'prill[scan]'") from None
    if file is None:
        try:
            return tiktoken.get_encoding("cl100k_base").encode_ordinary
        except Exception as error:  # it fetches the file, and raises what the network raises
            why = "cl100k_base is not in tiktoken's cache and cannot be fetched"
            raise InfraError(f"{why} ({type(error).__name__}); give the file with --vocabulary") from None
    try:
        pairs = [line.split() for line in file.read_bytes().splitlines() if line]
        ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{file}: not a file of token ranks ({error})") from None
    pattern = (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"
        r"\s*[\r\n]|\s+(?!\S)|\s"
    )
    made = tiktoken.Encoding("cl100k_base", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return made.encode_ordinary


def normal(text: str) -> str:
    """Small letters, blanks for punctuation, single blanks."""
    return " ".join(BLANKED.sub(" ", text.lower()).split())


class Field(NamedTuple):
    """A field of a reference item."""

    tokens: tuple[int, ...]
    grams: frozenset[Gram]


class Match(NamedTuple):
    """One reference item in one document."""

    ref_index: int
    combined_score: float
    best_field: str
    best_field_score: float
    field_scores: dict[str, float]
    threshold: float
    cumulative_tokens: int


class Cluster(NamedTuple):
    """What of one item was matched around a hit: the grams, and the places of the first and the last."""

    grams: frozenset[Gram]
    start: int
    end: int


def grams(tokens: Sequence[int], size: int) -> list[Gram]:
    """All runs of so many tokens."""
    return [tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)]


def first_text(row: dict[str, Any], names: Sequence[str]) -> str:
    """The first of these fields that has text."""
    return next((value for name in names if isinstance(value := row.get(name), str) and value.strip()), "")


def needed(tokens: int, least: float) -> float:
    """The score that a text of so many tokens must reach: all of a short one."""
    if tokens <= 20:
        return 1.0
    return least if tokens >= 50 else 1 - (1 - least) * (tokens - 20) / 30


class Checker:
    """The reference, indexed."""

    def __init__(self, reference: Sequence[dict[str, Any]], encode: Encode) -> None:
        self.encode = encode
        seen: set[tuple[Any, Any]] = set()
        self.items = [self._item(row, seen) for row in reference]
        self.idf: dict[str, dict[Gram, float]] = {}
        self.where: dict[Gram, set[int]] = {}
        for name in SIZES:
            spread: dict[Gram, int] = {}
            for item in self.items:
                for gram in item[name].grams if name in item else ():
                    spread[gram] = spread.get(gram, 0) + 1
            self.idf[name] = {gram: math.log(len(self.items) / n) for gram, n in spread.items()}
        for number, item in enumerate(self.items):
            for gram in item["question"].grams if "question" in item else ():
                self.where.setdefault(gram, set()).add(number)

    def tokens(self, text: str) -> list[int]:
        """Tokens of a text, normalised."""
        plain = normal(text)
        return self.encode(" " + plain) if plain else []

    def _item(self, row: dict[str, Any], seen: set[tuple[Any, Any]]) -> dict[str, Field]:
        texts = {name: first_text(row, names) for name, names in NAMES.items()}
        if not any(texts.values()):
            texts["question"] = " ".join(value for value in row.values() if isinstance(value, str))
        whole = " ".join(text for text in (texts["passage"], texts["question"], texts["answer"]) if text)
        [space] = self.encode(" ")[:1] or [-1]
        few = sum(token != space for token in self.tokens(whole)) < FEWEST_TOKENS
        if few or len(set(normal(whole).split())) < FEWEST_WORDS:
            return {}
        if row.get("fingerprint"):
            key = row.get("eval_key"), row["fingerprint"]
            if key in seen:
                return {}
            seen.add(key)
        found = {name: tuple(self.tokens(text)) for name, text in texts.items() if text}
        return {name: Field(each, frozenset(self._grams(name, each))) for name, each in found.items() if each}

    def _grams(self, name: str, tokens: tuple[int, ...]) -> list[Gram]:
        short = name == "answer" and len(tokens) <= SHORT_ANSWER
        return [] if short else grams(tokens, SIZES[name])

    def check(self, text: str) -> list[Match]:
        """Reference items in a document, the best first."""
        tokens = self.tokens(text)
        fives = grams(tokens, SIZES["question"])
        best: dict[int, Match] = {}
        at = 0
        while at < len(fives):
            if fives[at] not in self.where:
                at += STEP
                continue
            clusters, rightmost = self._grown(fives, at)
            for number, cluster in clusters.items():
                match = self._scored(number, cluster, tokens)
                if match and (number not in best or match.combined_score > best[number].combined_score):
                    best[number] = match
            at = max(at, rightmost + 1)
        return sorted(best.values(), key=lambda match: -match.combined_score)

    def _grown(self, fives: list[Gram], hit: int) -> tuple[dict[int, Cluster], int]:
        """For each item that has the gram, all of its grams around; and the last place looked at to the right."""
        items = self.where[fives[hit]]
        matched = {number: {fives[hit]} for number in items}
        edges = {number: [hit, hit] for number in items}
        rightmost = hit
        for side, step in ((0, -1), (1, 1)):
            misses = dict.fromkeys(items, 0)
            active, at = set(items), hit
            while active and 0 <= at + step < len(fives):
                at += step
                having = self.where.get(fives[at], set()) & active
                for number in having:
                    if fives[at] not in matched[number]:
                        misses[number] = 0
                    matched[number].add(fives[at])
                    edges[number][side] = at
                for number in active - having:
                    misses[number] += 1
                active = {number for number in active if misses[number] < MOST_MISSES}
            rightmost = at
        return {n: Cluster(frozenset(matched[n]), *edges[n]) for n in items}, rightmost

    def _share(self, name: str, item: Field, found: frozenset[Gram]) -> float:
        idf = self.idf[name]
        total = sum(idf[gram] for gram in item.grams)
        return sum(idf[gram] for gram in found) / total if total else 0.0

    def _scored(self, number: int, cluster: Cluster, tokens: list[int]) -> Match | None:
        """The item's score around a cluster, if it is enough."""
        item = self.items[number]
        question = item["question"]
        score = self._share("question", question, cluster.grams)
        if score < max(LEAST_QUESTION, needed(len(question.tokens), LEAST_QUESTION)):
            return None
        scores = {"question": score}
        last = cluster.end + SIZES["question"] - 1
        last -= max(0, last - cluster.start + 1 - len(question.tokens))
        if "answer" in item:
            scores["answer"] = self._answer(item["answer"], tokens, last + 1)
        if "passage" in item:
            scores["passage"] = self._passage(item["passage"], tokens, cluster.start)
        weights = self._weights(item)
        combined = min(1.0, sum(weights[name] * each for name, each in scores.items()))
        together = sum(len(field.tokens) for field in item.values())
        threshold = needed(together, THRESHOLD)
        if combined < threshold:
            return None
        name = max(scores, key=lambda each: scores[each])
        shown = {each: round(value, 4) for each, value in scores.items()}
        return Match(number, round(combined, 4), name, round(scores[name], 4), shown, round(threshold, 4), together)

    def _answer(self, answer: Field, tokens: list[int], start: int) -> float:
        """How much of the answer stands behind the question."""
        size = len(answer.tokens)
        if size <= SHORT_ANSWER:
            window = tokens[start : start + SHORT_WINDOW]
            return float(answer.tokens in grams(window, size))
        window = tokens[start : start + max(2 * size, LONG_WINDOW)]
        return self._share("answer", answer, answer.grams & frozenset(grams(window, SIZES["answer"])))

    def _passage(self, passage: Field, tokens: list[int], end: int) -> float:
        """How much of the passage stands before the question, walked backwards."""
        window = tokens[max(0, end - max(2 * len(passage.tokens), LONG_WINDOW)) : end]
        found: set[Gram] = set()
        misses = 0
        for gram in reversed(grams(window, SIZES["passage"])):
            if gram in passage.grams:
                found.add(gram)
                misses = 0
            elif found:
                misses += 1
                if misses > PASSAGE_MISSES:
                    break
        return self._share("passage", passage, frozenset(found))

    def _weights(self, item: dict[str, Field]) -> dict[str, float]:
        """What each field counts; what a question or answer has too little to say, goes to the others."""
        names = tuple(name for name in NAMES if name in item)
        weights = dict(zip(names, WEIGHTS[names], strict=True))
        have = len(item["question"].grams)
        sure = 1.0 if have >= INFORMATIVE_GRAMS else 0.5 + 0.5 * have / INFORMATIVE_GRAMS
        others = [name for name in names if name != "question"]
        if others:
            lost = weights["question"] * (1 - sure)
            weights["question"] -= lost
            for name in others:
                weights[name] += lost / len(others)
        if len(names) == 3:
            unique = len(set(item["answer"].tokens))
            sure = 1.0 if unique >= INFORMATIVE_TOKENS else 0.5 + 0.5 * unique / INFORMATIVE_TOKENS
            lost = weights["answer"] * (1 - sure)
            weights["answer"] -= lost
            weights["passage"] += lost
        return weights


def records(checker: Checker, file: Path, field: str) -> Iterator[tuple[str, list[Match]]]:
    """Each document of a file of JSON lines with what is found in it. Lines that are no object, or have no text, are
    no documents, as for the public checker."""
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(row, dict):
                continue
            text = first_text(row, (field, *TEXTS)) or " ".join(v for v in row.values() if isinstance(v, str))
            if text.strip():
                yield f"line:{number}", checker.check(text)


def summary(found: list[Match]) -> dict[str, Any]:
    """A document's matches, as the public checker writes them."""
    matches = [match._asdict() for match in found]
    return {"num_matches": len(matches), "max_score": found[0].combined_score, "matches": matches}
