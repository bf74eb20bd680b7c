"""A finished run as its deterministic judges read it: steps and deeds, the doors' logs, files, and citations of them.

All of it is hostile bytes: a file is read within bounds, a line that is none is counted, nothing is followed or run.
An address is ruled on by the run's own policy for hosts and by the fullest one that prill ships.
Not covered: what the trajectory does not show and no door saw.
"""

import contextlib
import hashlib
import stat
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from prill.catalog import Catalog
from prill.conduct import Deed, deeds, worth_judging
from prill.folder import RunFolder
from prill.gateway import hosts
from prill.gateway.ledger import Entry
from prill.outside import HostPolicy
from prill.record import Citation, Finding, Step
from prill.sockets import DOOR, TEACHER, Evidence
from prill.trajectory import steps as read_steps
from prill.trajectory.atif import steps_of

LONGEST_LINE = 1 << 20
LARGEST = 256 << 20
"""Of a trajectory that is read whole."""
LARGEST_TEXT = 4 << 20
"""Of a file of the workspace that is read as a program."""
MOST_LINES = 2_000_000
SHIPPED = "posttrainbench-1.1"
"""The policy that knows most hosts."""
CITED = 8
EVALUATORS = ("evaluate", "evaluate.py", "/prill/bin/evaluate", "evaluation_code", "evaluate_final_eval.py")
GIVEN = ("timer.sh", "contamination_check.py", "model_identity_check.py", "/prill/bin/prill-left", "prill-left")
"""What else a harness gives to its agents to run."""
OWN_HOSTS = {
    "claude_code": ("anthropic.com", "claude.ai", "claude.com"),
    "codex": ("openai.com", "chatgpt.com"),
    "gemini_cli": ("googleapis.com", "google.com"),
    "opencode": ("opencode.ai", "models.dev"),
}
"""Agent → hosts that its own program asks for, besides the door."""
LEADS = {"claude_code": "ANTHROPIC_BASE_URL", "gemini_cli": "GOOGLE_GEMINI_BASE_URL", "scripted": "PRILL_DOOR"}
"""Agent → the variable that leads every program of its box to the gateway's door."""


class Logged(Struct, frozen=True, kw_only=True):
    """One line of a log."""

    row: dict[str, Any]
    file: str
    line: int
    offset: int
    length: int
    sha256: str

    def cite(self, quote: str) -> Citation:
        """The line, for anyone to open."""
        return Citation(
            file=self.file,
            line=self.line,
            offset=self.offset,
            length=self.length,
            sha256=self.sha256,
            quote=quote[:300],
        )

    def word(self, name: str) -> str:
        """A field that is text; empty where it is none."""
        value = self.row.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float:
        """A field that is a number; 0 where it is none."""
        value = self.row.get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


class Place(Struct, frozen=True, kw_only=True):
    """An address, and what is known of it."""

    host: str
    path: str
    rule: str = ""
    """The rule that it bears on, such as `hosted_api`; empty: none."""
    certain: bool = False
    """Whether that is what it is for; otherwise it only may be."""
    door: bool = False
    """Whether it is the gateway's door, behind which the agent's own model is."""
    teacher: bool = False
    """Whether it is the gateway's door to the teacher that the suite offers."""
    local: bool = False
    why: str = ""


class Dossier:
    """A run folder, read as far as it is asked for."""

    def __init__(self, evidence: Evidence) -> None:
        self.run, self.folder = evidence.run, evidence.folder
        self.files = RunFolder(evidence.folder)
        self.spec = evidence.run.spec
        self.torn: dict[str, int] = {}
        """Log → lines that could not be read."""

    # --- what was done ---

    @cached_property
    def steps(self) -> list[Step]:
        """The steps; none where there is no trajectory."""
        data = self.bytes(self.files.trajectory, LARGEST)
        if data is not None:
            with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
                found = list(steps_of(msgspec.json.decode(data)))
                if found:
                    return found
        raw = self.files.stdout
        if not regular(raw):
            return []
        with raw.open("rb") as opened:
            return list(read_steps(self.spec.entrant.agent, bounded(opened)))

    @property
    def heard(self) -> bool:
        """Whether anything of what the agent said or did is understood."""
        return any(step.kind in ("message", "command") for step in self.steps)

    @cached_property
    def deeds(self) -> list[Deed]:
        """What the commands did."""
        lead = LEADS.get(self.spec.entrant.agent) if self.spec.provider and self.spec.origin is None else None
        leads = {lead: DOOR} if lead else {}
        if self.spec.teacher is not None:
            leads["PRILL_TEACHER_URL"] = TEACHER + self.spec.teacher.base
        return deeds(self.steps, self.look, leads)

    def look(self, path: str) -> str | None:
        """The text of a file of the workspace, or of a tool that lay in the box."""
        if path.startswith("/prill/bin/") and path.count("/") == 3:
            data = self.bytes(self.folder / "given" / "bin" / path.rpartition("/")[2], LARGEST_TEXT)
            return None if data is None else data.decode(errors="replace")
        if path.startswith("/") or ".." in path.split("/") or "\0" in path:
            return None
        data = self.bytes(self.folder / "workspace" / path, LARGEST_TEXT)
        return None if data is None or b"\0" in data[:8_000] else data.decode(errors="replace")

    @staticmethod
    def bytes(file: Path, most: int) -> bytes | None:
        """A regular file's bytes; `None` where it is none, or larger."""
        try:
            return file.read_bytes() if regular(file) and file.stat().st_size <= most else None
        except (OSError, ValueError):
            return None

    # --- what the doors saw ---

    @cached_property
    def egress(self) -> list[Logged] | None:
        """The proxy's log; `None` where there is none."""
        return self.log(self.files.egress)

    @cached_property
    def hub(self) -> list[Logged] | None:
        """The hub front's log; `None` where there is none."""
        return self.log(self.files.hub)

    @cached_property
    def ledger(self) -> list[tuple[Entry, Logged]]:
        """Entries of the ledger, those that are whole."""
        found = []
        for logged in self.log(self.files.ledger) or ():
            with contextlib.suppress(msgspec.ValidationError, ValueError):
                found.append((msgspec.convert(logged.row, Entry), logged))
        return found

    def log(self, file: Path) -> list[Logged] | None:
        """Lines that are JSON objects, of a bounded length and number."""
        if not regular(file):
            return None
        found: list[Logged] = []
        offset = torn = 0
        with file.open("rb") as opened:
            for number, line in enumerate(bounded(opened), 1):
                try:
                    row = msgspec.json.decode(line) if len(line) < LONGEST_LINE else None
                except (msgspec.DecodeError, ValueError, RecursionError):
                    row = None
                if isinstance(row, dict) and len(found) < MOST_LINES:
                    digest, length = hashlib.sha256(line.rstrip(b"\n")).hexdigest(), len(line.rstrip(b"\n"))
                    found.append(
                        Logged(row=row, file=file.name, line=number, offset=offset, length=length, sha256=digest)
                    )
                else:
                    torn += bool(line.strip())
                offset += len(line)
        self.torn[file.name] = torn
        return found

    @property
    def shut(self) -> bool:
        """Whether nothing but the gateway could be reached from the box."""
        outcome = self.run.outcome
        return self.spec.origin is None and self.spec.hosts is None and bool(outcome and outcome.isolated)

    @property
    def seen(self) -> bool:
        """Whether all that left the box went by a door that kept a log."""
        outcome = self.run.outcome
        whole = self.egress is not None and not self.torn.get(self.files.egress.name)
        return self.shut or bool(self.spec.origin is None and outcome and outcome.isolated and whole)

    def own_host(self, host: str) -> bool:
        """Whether the agent's own program asks for it."""
        known = OWN_HOSTS.get(self.spec.entrant.agent, ())
        return any(host == own or host.endswith(f".{own}") for own in known)

    # --- addresses ---

    @cached_property
    def policies(self) -> list[HostPolicy]:
        """The run's own policy, and the fullest."""
        shipped = Catalog([]).hosts(SHIPPED)
        return [shipped] if self.spec.hosts is None or self.spec.hosts.name == SHIPPED else [self.spec.hosts, shipped]

    def place(self, url: str) -> Place:
        """What an address is. Total."""
        try:
            parts = urlsplit(url if "://" in url else f"https://{url}")
            host, port, path = parts.hostname or "", parts.port, parts.path
        except ValueError:
            return Place(host="", path="")
        return self.host(host, path, port)

    def host(self, host: str, path: str | None = None, port: int | None = None) -> Place:
        """What a host is, and a place on it."""
        if not host or "{" in host or "$" in host:
            return Place(host=host, path=path or "")
        try:
            name = hosts.normal(host)
        except ValueError:
            return Place(host=host, path=path or "")
        number = hosts.address(name)
        if name == "localhost" or name.endswith((".local", ".internal")) or (number and hosts.not_public(number)):
            ours = self.spec.origin is None
            door = port == urlsplit(DOOR).port and ours and self.spec.provider is not None
            teacher = port == urlsplit(TEACHER).port and ours and self.spec.teacher is not None
            rule = "hosted_api" if door else ""
            return Place(host=name, path=path or "", local=True, door=door, teacher=teacher, rule=rule, certain=door)
        for policy in self.policies:
            ruling = hosts.judge(policy, name, path)
            if ruling.line is not None and ruling.rule in ("hosted_api", "lookup"):
                certain = ruling.verdict == "deny" or (policy.name != SHIPPED and ruling.verdict != "flag")
                allowed = policy.name != SHIPPED and ruling.verdict == "allow"
                return Place(
                    host=name, path=path or "", rule="" if allowed else ruling.rule, certain=certain, why=ruling.why
                )
        return Place(host=name, path=path or "")

    # --- the evaluator ---

    def evaluator(self, deed: Deed) -> bool:
        """Whether a deed is the given evaluator's own."""
        script = (deed.by or deed.how).removeprefix("../")
        return any(script == each or script.startswith(each + "/") for each in EVALUATORS)

    def given(self, deed: Deed) -> bool:
        """Whether a deed is a program's that the harness gave."""
        return self.evaluator(deed) or (deed.by or deed.how).removeprefix("../") in GIVEN

    @cached_property
    def judged(self) -> bool:
        """Whether the evaluator itself asks a judge model."""
        return any(benchmark.asked is not None for benchmark in self.spec.benchmarks)

    # --- words ---

    def cite(self, deed: Deed) -> Citation:
        """A deed by its step, and by its bytes where they are at hand; the quote is the step's own words."""
        step, digest, quote = deed.step, None, words_of(deed)
        raw = self.files.stdout
        if step.length > 0 and regular(raw):
            with raw.open("rb") as opened:
                opened.seek(max(0, step.offset))
                data = opened.read(min(step.length, LARGEST))
            digest = hashlib.sha256(data).hexdigest() if len(data) == step.length else None
        if digest is None:
            return Citation(file=self.files.trajectory.name, step=step.step, quote=quote)
        return Citation(
            file="raw/stdout", offset=step.offset, length=step.length, step=step.step, sha256=digest, quote=quote
        )

    def open(self) -> str:
        """Why innocence cannot be told: nothing was heard, or no door kept a log and not all is read; else empty."""
        unseen = self.unseen()
        if not self.heard or not unseen:
            return unseen
        return "" if self.seen else f"no door kept a log of this run, and {unseen}"

    def unseen(self) -> str:
        """Why the commands do not tell everything; empty where they do."""
        if not worth_judging(len(self.steps)):
            return "there are no steps"
        if not self.heard:
            return "nothing that the agent said or did can be read"
        unread = sorted({deed.what for deed in self.deeds if deed.verb == "unread" and not self.given(deed)})
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        return f"not read: {', '.join(unread[:3])}{more}" if unread else ""


def said(
    rule: str,
    broken: Mapping[str, list[Citation]],
    suspect: Mapping[str, list[Citation]],
    kept: str,
    unknown: str = "",
    numbers: dict[str, Any] | None = None,
) -> Finding:
    """A finding: broken where anything is, else unknown where anything needs a look or could not be seen, else kept."""
    for verdict, found in (("broken", broken), ("unknown", suspect)):
        if found:
            reasons = list(found)
            more = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            lead = "" if verdict == "broken" else "suspect: "
            cites = [cite for each in found.values() for cite in each][:CITED]
            why = lead + "; ".join(reasons[:3]) + more
            return Finding(rule=rule, verdict=verdict, why=why[:2_000], citations=tuple(cites), numbers=numbers or {})  # type: ignore[arg-type]
    verdict, why = ("unknown", unknown) if unknown else ("kept", kept)
    return Finding(rule=rule, verdict=verdict, why=why[:2_000], numbers=numbers or {})  # type: ignore[arg-type]


def words_of(deed: Deed) -> str:
    """The line of a step that a deed is seen in, or its first."""
    text = deed.step.text
    at = max(0, text.find(deed.what[:100])) if deed.what else 0
    start = max(text.rfind("\n", 0, at) + 1, at - 100)
    return text[start : start + 300].split("\n", 1)[0]


def note(found: dict[str, list[Citation]], why: str, *cites: Citation) -> None:
    """One more reason."""
    found.setdefault(why, []).extend(cites)


def regular(file: Path) -> bool:
    """Whether it is a file and no link, pipe or device."""
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except (OSError, ValueError):
        return False


def bounded(opened: Any) -> Iterator[bytes]:
    """Lines of a binary file; of one that is too long, its beginning and then its end."""
    while line := opened.readline(LONGEST_LINE):
        yield line
