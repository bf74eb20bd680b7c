"""How a submission's weights lie to the base model, to its known siblings and to control runs: the measuring.

Every matrix is compared with the base's, and S - B with each sibling's I - B; what a verdict makes of the figures is
in `rule.py`. Models are folders or fingerprints. Where the weights are far from the base as they stand, permutations,
rotations and scales are undone first (`align.py`), for which the base must be at hand as a folder.
Not covered: distillation (it leaves no trace in weights), and what `align.py` does not undo.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from prill.checkpoint import align, fingerprint
from prill.checkpoint.controls import partial
from prill.checkpoint.distances import ToBase, ToSibling, to_base, to_sibling
from prill.checkpoint.fingerprint import opened
from prill.checkpoint.layout import EMBEDDING, HEAD, PRODUCT, added_to_one, products
from prill.checkpoint.sources import Frame, Source, Stored, Turned
from prill.checkpoint.sweep import Whole, sweep
from prill.checkpoint.values import VOCABULARY, Pick, Plan, Weights, bfloat_bits, open_weights, pick, tamed
from prill.errors import DefinitionError
from prill.record import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAME_COSINE = 0.9
"""Every tensor of a fine-tune keeps at least this cos(S, B); another seed's model has about 0."""
SAME_SIZE = (0.7, 1.4)
"""|S| / |B| of every tensor of a fine-tune."""
UNSEEN = ("vision", "multi_modal", "audio", "mtp.", "lm_head")
"""Parts of a base that a submission may leave out: towers that text does not use, and a head tied to the embedding."""

Kind = Literal["instruct", "submission"]


class Likeness(Record, frozen=True, kw_only=True):
    """S - B against one other model's I - B, over all tensors in which that model differs from the base."""

    name: str
    kind: Kind = "instruct"
    rows: tuple[ToSibling, ...]
    partial: dict[str, float] | None = None
    """tensor → coefficient beside the controls; `None` where there are none."""
    controls: int = 0
    """How many control runs that was beside."""


class Measured(Record, frozen=True, kw_only=True):
    """All that a verdict needs to know."""

    rows: tuple[ToBase, ...]
    likenesses: tuple[Likeness, ...]
    missing: tuple[str, ...]
    """Tensors of the base that the submission lacks, or has in another shape."""
    extra: tuple[str, ...]
    """Tensors that the base lacks."""
    unread: str = ""
    """Why the submission's weights could not be compared at all."""
    absent: tuple[str, ...] = ()
    """Known siblings that were not at hand."""
    undone: tuple[str, ...] = ()
    """What had to be undone before the weights could be compared, in words; the figures are those after it."""
    digests: dict[str, str] = msgspec.field(default_factory=dict)
    """File of the submission → SHA-256 of the bytes that were compared, where all were."""


class Known(Record, frozen=True, kw_only=True):
    """A model that the submission is compared with."""

    name: str
    kind: Literal["instruct", "control", "submission"]
    source: Any
    """A `Source`."""
    plan: Plan | None = None
    """The plan of its fingerprint; `None` for a folder, which has its values everywhere."""


class References(Record, frozen=True, kw_only=True):
    """The base and everything else that is known, opened."""

    base: Any
    """`Stored`, or `Kept` of a fingerprint."""
    known: tuple[Known, ...]
    plan: Plan
    """By which folders are sampled."""

    @property
    def folder(self) -> Stored | None:
        """The base, if it is at hand as a folder."""
        return self.base if isinstance(self.base, Stored) else None


def references(
    base: Path | None,
    siblings: Mapping[str, Path],
    *,
    fingerprints: Sequence[Path] = (),
    controls: Mapping[str, Path] = {},
    others: Mapping[str, Path] = {},
    seed: int = 0,
) -> References:
    """Open what a submission is compared with. `others` are submissions from the same base.

    A sibling that is at hand as a folder and in a fingerprint is taken from the folder. Raises `InfraError` for a
    folder that cannot be read, `DefinitionError` for a file that is no fingerprint of this base, or with no base.
    """
    folders = {"instruct": siblings, "control": controls, "submission": others}
    known = [
        Known(name=name, kind=kind, source=opened(folder))  # type: ignore[arg-type]
        for kind, group in folders.items()
        for name, folder in sorted(group.items())
    ]
    prints = [fingerprint.load(file) for file in fingerprints]
    origin: Source | None = opened(base) if base is not None else None
    for print in prints:
        if isinstance(origin, Stored):
            print.belongs(origin)
        elif (print.head.base, print.head.plan) != (prints[0].head.base, prints[0].head.plan):
            why = f"of another base, or sampled at other places, than {prints[0].file}"
            raise DefinitionError(f"{print.file}: {why}; give the base's folder, or fingerprints made alike")
        known += [
            Known(name=name, kind=kind, source=source, plan=print.head.plan)
            for kind in ("instruct", "control")
            for name, source in print.models(kind).items()
            if name not in folders[kind]
        ]
    if origin is None and not prints:
        raise DefinitionError("without a base there is nothing to compare with; give its folder, or a fingerprint")
    if origin is None and any(each.plan is None for each in known):
        raise DefinitionError("models in folders can be compared only where the base is a folder too; give it")
    plan = Plan(seed=seed) if origin is not None else prints[0].head.plan
    return References(base=origin or prints[0].base(), known=tuple(known), plan=plan)


def compare(
    submission: Path,
    against: References,
    *,
    absent: Sequence[str] = (),
    whole: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Measure every matrix of a submission against its base and each model that is known.

    Large tensors are sampled at places drawn by the plan's seed; take one that the submission's author could not know.
    With `whole`, all but directions and signs are taken over every element, at the price of reading all folders once.
    """
    weights = open_weights(submission)
    ours, against = Stored(weights), headed(against, weights)
    base = against.base
    broken = [fault for fault in weights.faults if fault.severity == "fatal"]
    if broken or weights.unread > sum(rows * columns for rows, columns in ours.shapes.values()):
        packed = "most of its weights are not plain floating-point numbers"
        unread = f"{broken[0].code}: {broken[0].why}" if broken else packed
        return Measured(rows=(), likenesses=(), missing=(), extra=(), unread=unread, absent=tuple(absent))
    real = {name: shape for name, shape in base.shapes.items() if not name.endswith(PRODUCT)}
    names = [name for name in sorted(ours.shapes) if fits(name, ours.shapes, real)]
    missing = [n for n in sorted(real) if n not in names and not any(part in n for part in UNSEEN)]
    extra = [n for n in sorted(ours.shapes) if n not in names]
    say(f"{len(names)} matrices, sampled")
    rows, like = sampled(ours, against, names, lambda model: model)
    digests: dict[str, str] = {}
    undone: tuple[str, ...] = ()
    folder = against.folder
    if whole and folder is not None:
        say("every element")
        rows, like, digests = swept(submission, ours, against, rows, like)
    if folder is not None and not missing and not extra and any(map(far, rows)):
        say("far from the base: looking for permutations, rotations and scales")
        again = turned(ours, folder, against, names)
        if again is not None and (closeness(again[0]) > closeness(rows) or not any(map(far, again[0]))):
            rows, like, undone = again
    return Measured(
        rows=tuple(rows),
        likenesses=like,
        missing=tuple(missing),
        extra=tuple(extra),
        absent=tuple(absent),
        undone=undone,
        digests=digests,
    )


def far(row: ToBase) -> bool:
    """Whether a matrix is farther from the base's than training takes it; NaN is far."""
    return not (row.cosine >= SAME_COSINE and SAME_SIZE[0] <= row.size <= SAME_SIZE[1])


def closeness(rows: Sequence[ToBase]) -> float:
    """The mean cosine with the base over matrices."""
    return fmean(row.cosine for row in rows)


def fits(name: str, ours: Mapping[str, tuple[int, int]], theirs: Mapping[str, tuple[int, int]]) -> bool:
    """Whether both have a matrix in one shape; only tensors whose rows are tokens may differ in their number."""
    here, there = ours[name], theirs.get(name)
    return there is not None and (here == there or (here[1] == there[1] and name.endswith(VOCABULARY)))


def headed(against: References, ours: Weights) -> References:
    """The same, with the embedding as the head of each folder that ties the two, where a submission writes a head out.

    A head is a matrix like any other: beside a base that is a fingerprint only, one that it lacks is nobody's.
    """
    if HEAD not in ours.places or HEAD in against.base.shapes or against.folder is None:
        return against

    def untied(model: Stored) -> Stored:
        places = model.weights.places
        same = {HEAD: places[EMBEDDING]} if HEAD not in places and EMBEDDING in places else {}
        return Stored(replace(model.weights, places={**places, **same}))

    known = [replace(each, source=untied(each.source)) if each.plan is None else each for each in against.known]
    return replace(against, base=untied(against.folder), known=tuple(known))


def sampled(
    ours: Source, against: References, names: Sequence[str], view: Callable[[Source], Source]
) -> tuple[list[ToBase], tuple[Likeness, ...]]:
    """The figures over the places that each plan draws, with the base and all others seen through `view`."""
    base, rows = view(against.base), []
    sources = {id(each): view(each.source) for each in against.known}
    found = {id(each): Gathered(each) for each in against.known if each.kind != "control"}
    for plan in dict.fromkeys([against.plan, *(each.plan for each in against.known if each.plan)]):
        here = [each for each in against.known if each.plan in (None, plan)]
        controls = [each for each in here if each.kind == "control"]
        for name in names:
            at = Sample(ours, base, name, plan)
            if plan == against.plan:
                rows.append(to_base(name, at.count, at.s, at.b, share(at.bits[0], at.bits[1])))
            others = [None if (there := at.take(sources[id(each)])) is None else there - at.b for each in controls]
            for each in here:
                if each.kind != "control" and (each.plan == plan or plan == against.plan or controls):
                    # a folder's values are everywhere: beside a fingerprint's controls it is looked at in their places
                    home = each.plan == plan or (each.plan is None and plan == against.plan)
                    found[id(each)].add(at, at.take(sources[id(each)]), others, home=home)
    return rows, tuple(each.likeness() for each in found.values())


class Sample:
    """One matrix of the submission and of the base at one plan's places."""

    def __init__(self, ours: Source, base: Source, name: str, plan: Plan) -> None:
        whole, self.shape, self.grows = ours.shapes[name], base.shapes[name], name.endswith(VOCABULARY)
        every = pick(name, *self.shape, plan)
        rows = every.rows[every.rows < whole[0]]
        self.name, self.count, self.pick = name, whole[0] * whole[1], Pick(rows=rows, columns=every.columns)
        stored, self.b = ours.take(name, self.pick), base.take(name, self.pick)
        self.bits = bfloat_bits(stored, "F32"), bfloat_bits(self.b, "F32")
        self.s = tamed(stored)
        self.moved = self.s - self.b

    def take(self, other: Source) -> "NDArray[Any] | None":
        """Another model's values there, or `None` where it has no such matrix."""
        rows, columns = other.shapes.get(self.name, (0, 0))
        if columns != self.shape[1] or rows < self.shape[0] or (rows > self.shape[0] and not self.grows):
            return None
        return other.take(self.name, self.pick)


def share(a: "NDArray[Any]", b: "NDArray[Any]") -> float:
    """Of elements that are equal."""
    import numpy as np

    return np.count_nonzero(a == b) / a.size if a.size else 1.0


class Gathered:
    """What has been found about one model."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.rows: list[ToSibling] = []
        self.partials: dict[int, dict[str, float]] = {}
        """Number of controls → tensor → coefficient."""

    def add(
        self, at: Sample, there: "NDArray[Any] | None", controls: "list[NDArray[Any] | None]", *, home: bool
    ) -> None:
        """One tensor; `home` where it is measured by itself, and not only beside controls."""
        if there is None:
            return
        delta = there - at.b
        if home:
            bits = bfloat_bits(there, "F32")
            equal, kin = share(at.bits[0], bits), share(at.bits[1], bits)
            row = to_sibling(at.name, at.count, at.b, at.moved, delta, equal, kin)
            self.rows += [row] if row else []
        others = [other for other in controls if other is not None]
        if controls and len(others) == len(controls) and delta.any():
            self.partials.setdefault(len(others), {})[at.name] = partial(at.moved, delta, others)

    def likeness(self) -> Likeness:
        """All of it, with the coefficients beside the most controls."""
        most = max(self.partials, default=0)
        return Likeness(
            name=self.known.name,
            kind=self.known.kind,  # type: ignore[arg-type]
            rows=tuple(self.rows),
            partial=self.partials.get(most),
            controls=most,
        )


def swept(
    submission: Path, ours: Stored, against: References, rows: list[ToBase], like: tuple[Likeness, ...]
) -> tuple[list[ToBase], tuple[Likeness, ...], dict[str, str]]:
    """The same figures over every element of all that is a folder, and the digests of the submission's files."""
    base = against.folder
    assert base is not None
    models = [each for each in against.known if each.kind != "control"]
    folders = {str(n): each.source.weights.places for n, each in enumerate(models) if each.plan is None}
    found = sweep(submission, ours.weights.shards, ours.weights.places, base.weights.places, folders)
    rows = [over_all(row, found.tensors[row.tensor]) for row in rows]
    along = tuple(
        replace(one, rows=tuple(along_all(row, str(n), found.tensors[row.tensor]) for row in one.rows))
        for n, one in enumerate(like)
    )
    return rows, along, found.digests


def over_all(row: ToBase, whole: Whole) -> ToBase:
    """A tensor's row with the figures of all its elements."""
    return replace(row, seen=whole.count, cosine=whole.cosine, move=whole.move, size=whole.size, equal=whole.equal)


def along_all(row: ToSibling, name: str, whole: Whole) -> ToSibling:
    """The same beside another model."""
    if name not in whole.siblings:
        return row
    alpha, cosine, equal = whole.siblings[name]
    return replace(row, alpha=alpha, cosine=cosine, equal=equal)


def turned(
    ours: Stored,
    base: Stored,
    against: References,
    names: Sequence[str],
) -> tuple[list[ToBase], tuple[Likeness, ...], tuple[str, ...]] | None:
    """The figures of the submission seen in the base's order, and what that undid; `None` where that cannot be found.

    The order is looked for beside the base and beside each sibling at hand, since a rotation that is fitted to the base
    would hide part of what a sibling has; the better fit counts. W_v and W_o are compared by their product.
    """
    beside = [base, *(each.source for each in against.known if each.kind != "control" and each.plan is None)]
    frames = [frame for other in beside if (frame := align.find(ours, other)) is not None]
    if not frames:
        return None
    frame = max(frames, key=lambda frame: frame.fit)
    one_more = added_to_one(base.weights.config)
    made = products({name: base.shapes[name] for name in names}, base.heads)
    factors = {product.replace(PRODUCT, f"self_attn.{kind}_proj.weight") for product in made for kind in "vo"}
    if made and not frame.said:
        frame = replace(frame, said=("rotations or scales of value heads",))

    def straight(model: Source) -> Source:
        return Turned(model, Frame(), base.heads, one_more=one_more, made=made)

    seen = Turned(ours, frame, base.heads, one_more=one_more, made=made)
    rows, like = sampled(seen, against, [*(name for name in names if name not in factors), *made], straight)
    return rows, like, frame.said
