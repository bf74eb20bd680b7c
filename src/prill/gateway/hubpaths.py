"""What a request to a model and data hub is for, and what is done with it. Pure: every spelling comes to one form.

A repository's name is compared without regard to case. Of a test set that shares its repository with training data
only the files whose path names the split are refused. Not covered: copies under other names (they are for a judge),
and test items inside files whose path does not say so (those are flagged).
"""

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

from prill.gateway.hosts import Ruling, fits
from prill.spec import RunSpec

Kind = Literal["models", "datasets", "spaces"]
What = Literal["file", "facts", "list", "nothing"]

NAME = re.compile(r"(?!.*(--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,95})(?<![.-])")
COMMIT = re.compile(r"[0-9a-f]{40}")
KINDS: tuple[Kind, ...] = ("models", "datasets", "spaces")
FACTS = ("revision", "tree", "paths-info", "refs", "commits", "parquet", "safetensors-metadata", "treesize")
LISTS = ("models", "datasets", "spaces", "models-tags-by-type", "datasets-tags-by-type")
NOT_OWNERS = frozenset(
    ("api", "datasets", "spaces", "models", "kernels", "buckets", "resolve", *FACTS, "resolve-cache")
)
KEY = re.compile(r"(?P<repo>[^() ]+)(?: \(split (?P<split>[\w-]+)\))?")
DATA = re.compile(r"\.(parquet|jsonl?|csv|tsv|arrow|zip|gz|tar|tgz|zst|xz|bz2|7z|txt|pkl|npz|db|sqlite)$", re.I)
OTHER_SPLITS = frozenset(("train", "training", "validation", "valid", "val", "dev"))


class Wanted(Struct, frozen=True, kw_only=True):
    """One request to the hub."""

    what: What
    kind: Kind = "models"
    repo: str = ""
    revision: str | None = None
    file: str = ""
    """For `file`: its path in the repository; for `facts`: which, such as `tree/data`."""
    path: str = ""
    """The path for the hub, spelt anew."""

    @property
    def commit(self) -> bool:
        """Whether the revision can never mean something else."""
        return self.revision is not None and COMMIT.fullmatch(self.revision) is not None

    def at(self, commit: str) -> "Wanted":
        """The same file of a commit."""
        return a_file(self.kind, self.repo, commit, self.file)


def wanted(raw: str) -> Wanted:
    """The path of a request, as it was sent and without its query, in one form. `ValueError` where it has none."""
    if not raw.startswith("/") or len(raw) > 4000:
        raise ValueError("not a path of the hub")
    parts = [part(each) for each in raw[1:].split("/")]
    if parts and parts[-1] == "":
        parts.pop()
    if parts[:1] == ["api"]:
        return facts(parts[1:])
    kind: Kind = "models"
    if parts[:1] in (["datasets"], ["spaces"]):
        kind = "datasets" if parts.pop(0) == "datasets" else "spaces"
    verb = next((at for at, word in enumerate(parts[:3]) if word == "resolve"), 0)
    if not verb or len(parts) < verb + 3:
        return Wanted(what="nothing")
    return a_file(kind, named(parts[:verb]), parts[verb + 1], stepped(parts[verb + 2 :]))


def part(text: str) -> str:
    """One step of a path, decoded once. A slash inside is only for revisions, and checked there."""
    try:
        plain = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise ValueError("a path that is not UTF-8") from None
    if any(character < " " or character in "\x7f\\" for character in plain) or plain in (".", ".."):
        raise ValueError("a path with a step that is none")
    return plain


def named(parts: list[str]) -> str:
    """A repository's name of one or two words. `ValueError` for what no hub would call one."""
    fine = len(parts) in (1, 2) and all(NAME.fullmatch(each) for each in parts)
    if not fine or parts[0].lower() in NOT_OWNERS or parts[-1].lower().endswith((".git", ".ipynb")):
        raise ValueError("not a repository's name")
    return "/".join(parts)


def revised(text: str) -> str:
    """A revision: a branch, a tag, a commit, or something like `refs/pr/1`."""
    if not text or len(text) > 250 or any(step in ("", ".", "..") for step in text.split("/")):
        raise ValueError("not a revision")
    return text


def stepped(steps: list[str]) -> str:
    """A path in a repository. No step may hold a slash of its own: it would lead elsewhere than it looks."""
    if any(not step or "/" in step for step in steps):
        raise ValueError("a path with a step that is none")
    return "/".join(steps)


def a_file(kind: Kind, repo: str, revision: str, file: str) -> Wanted:
    """A request for a file."""
    front = "" if kind == "models" else f"/{kind}"
    path = f"{front}/{repo}/resolve/{quote(revised(revision), safe='')}/{quote(file)}"
    return Wanted(what="file", kind=kind, repo=repo, revision=revision, file=file, path=path)


def facts(parts: list[str]) -> Wanted:
    """A request below `/api`."""
    if len(parts) == 1 and parts[0] in LISTS:
        return Wanted(what="list", path=f"/api/{parts[0]}")
    cached = parts[:1] == ["resolve-cache"]
    kind = next((each for each in KINDS if parts[cached : cached + 1] == [each]), None)
    if kind is None:
        return Wanted(what="nothing")
    rest = parts[1 + cached :]
    if cached:
        at = next((at for at, step in enumerate(rest[:3]) if at and COMMIT.fullmatch(step)), 0)
        return a_file(kind, named(rest[:at]), rest[at], stepped(rest[at + 1 :])) if at else Wanted(what="nothing")
    at = next((at for at, word in enumerate(rest[:3]) if at and word in FACTS), len(rest))
    name, more = named(rest[:at]), rest[at:]
    revision = revised(more[1]) if more[1:] and more[0] in ("revision", "tree", "paths-info", "commits") else None
    below = more[2:] if revision is not None else more[1:]
    if any(step in ("", ".", "..") for each in below for step in each.split("/")):
        raise ValueError("a path with a step that is none")
    path = "/".join(["/api", kind, name, *(quote(each, safe="") for each in more)])
    about = "/".join([*more[:1], *below])
    return Wanted(what="facts", kind=kind, repo=name, revision=revision, file=about, path=path)


def rule(asked: Wanted, denied: Mapping[str, str], flagged: Mapping[str, str]) -> Ruling:
    """What is done with a request.

    Keys are repositories, `*` standing for any part, or `REPO (split NAME)`: the files whose path names the split.
    A value is `RULE: WHY`. What is denied comes first, then what is flagged.
    """
    name = asked.repo.lower()
    for verdict, lines in (("deny", denied), ("flag", flagged)):
        for key, words in lines.items():
            match = KEY.fullmatch(key)
            if match is None or not name or not fits(match["repo"], name):
                continue
            found = verdict if match["split"] is None else in_split(asked, match["split"].lower())
            if found == "allow":
                continue
            bears, _, why = words.partition(": ")
            why = why if found == verdict else f"{why}; the path does not say which split it holds"
            return Ruling(host=asked.repo, verdict="deny" if found == "deny" else "flag", rule=bears, why=why, line=key)
    return Ruling(host=asked.repo, verdict="allow", rule="hub", why="no line names it")


def in_split(asked: Wanted, split: str) -> Literal["allow", "deny", "flag"]:
    """Whether a file belongs to a split, by its path: `flag` for data that may. Facts about a repository are free."""
    tells = asked.file if asked.what == "file" else asked.file.removeprefix("parquet") if bulk(asked) else ""
    words = set(re.split(r"[^a-z0-9]+", tells.lower()))
    if split in words:
        return "deny"
    return "flag" if DATA.search(tells) and not words & OTHER_SPLITS else "allow"


def bulk(asked: Wanted) -> bool:
    """Whether facts are in truth a data set's rows."""
    return asked.what == "facts" and asked.file.startswith("parquet/")


def denied_of(spec: RunSpec) -> tuple[dict[str, str], dict[str, str]]:
    """What a run's box may not have of the hub, and what is brought to a judge's notice: name → `RULE: WHY`.

    The benchmarks' test sets, the base model's post-trained siblings, and what the policy for hosts says of places on
    the hub; other repositories that carry the name of one of these are flagged.
    """
    denied: dict[str, str] = {}
    for benchmark in spec.benchmarks:
        own = f"{benchmark.data.repo} (split {benchmark.data.split})" if benchmark.data.repo else None
        keys = benchmark.forbidden
        if own and not any(repo_of(key).lower() == repo_of(own).lower() for key in keys):
            keys = (*keys, own)
        for key in keys:
            other = "; name the files of another split, as in load_dataset(..., data_files=...)" if "(" in key else ""
            denied[key] = f"contamination: it holds items of {benchmark.title}, which must not be trained on{other}"
    for sibling in spec.model.siblings:
        if sibling.repo:
            denied[sibling.repo] = f"lineage: it is a post-trained relative of {spec.model.title}; start from that one"
    flagged = {
        f"*/{key.rpartition('/')[2]}": f"{words.partition(': ')[0]}: it carries the name of {key}, which is denied"
        for key, words in denied.items()
        if "(" not in key
    }
    for line in spec.hosts.hosts if spec.hosts else ():
        place, said = line.name.partition("/")[2], f"{line.rule}: {line.why}"
        if place and line.verdict != "allow" and same_host(line.name, spec.hosts.hub if spec.hosts else None):
            (denied if line.verdict == "deny" else flagged)[place.removeprefix("datasets/")] = said
    return denied, flagged


def repo_of(key: str) -> str:
    """The repository of a key."""
    return key.partition(" (")[0]


def same_host(name: str, hub: str | None) -> bool:
    """Whether a policy's line is about a place on the hub."""
    return hub is not None and name.partition("/")[0] == hub.partition("://")[2].partition("/")[0]
