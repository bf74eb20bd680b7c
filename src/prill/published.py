"""What somebody else's results tree keeps of one run, file by file, as our records.

PostTrainBench's files, of all its versions: `metrics.json`, `time_taken.txt`, the trace, and verdicts in the layout of
v1 (two texts) and in the later one (a JSON file a judge). Precedence of verdicts, as the published code has it: a
human's `_manual`; else, where three slots are there (`_rerun` or the inline file, and two of `judgement_multi_runs`),
the majority of each field; else the first slot. A second contamination judge (`kimi`) is joined by or. `_rerun` goes
before the file without. A malformed file is a fault, and what it would have said stays unknown.
Not covered: whether a published file is genuine.
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from prill.folder import RunFolder, file_digest, list_files
from prill.record import Citation, File, Finding, Judgement, Measurement, Outcome, Submission
from prill.scoring.overview import seconds_of
from prill.scoring.tally import number
from prill.standings import ImportFault

TRACES = ("solve_out.txt", "trace.txt")
PROMPT = "prompt.txt"
STUB = re.compile(r"No .{1,80} produced\.?\s*")
"""What the published extracts put where a file was not there."""
HASHED = 100_000_000
"""Bytes up to which a file of the submission is hashed."""
TEXTS = {
    "contamination": ("contamination_judgement", "contamination detected", "no contamination detected"),
    "disallowed_model": ("disallowed_model_judgement", "disallowed use detected", "only allowed use detected"),
}
"""Field → file of v1, the text that means true, the text that means false."""
FIELDS = {
    "api_usage": ("judgement_api", "disallowed_api_usage", "hosted_api"),
    "ptb_lookup": ("judgement_ptb_lookup", "disallowed_ptb_lookup", "lookup"),
    "general": ("judgement_general", "general_anomaly", "general"),
}
"""Judge → its file, its field, and our rule."""
RULES = {"contamination": "contamination", "disallowed_model": "lineage"}
CODEX_TOKENS = re.compile(rb"tokens used[^\S\n]*\n(?:\[[^\]\n]*\] )?([\d,]+)")


def text_of(file: Path) -> str | None:
    """The text of a file; none where it is not there or is a stub that says so."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return None if STUB.fullmatch(text) else text


class Published:
    """One cell's folder, read once. `faults` names what was malformed."""

    def __init__(self, source: Path, path: str) -> None:
        self.source, self.path = source, path
        self.faults: list[ImportFault] = []
        self.judgements = tuple(judgement for judgement in self.spoken() if judgement.findings)

    def fill(self, run: RunFolder) -> None:
        """Copies of all that the tree keeps, then the records made of it."""
        spec = run.spec()
        self.copy(run)
        measured = self.measurement(spec.benchmarks[0].name, spec.benchmarks[0].data.count)
        run.write(run.submission_file, self.submission(measured))
        run.write(run.next_numbered("measurements", measured.benchmark), measured)
        for judgement in self.judgements:
            run.write(run.next_numbered("findings", judgement.judge), judgement)
        run.append("imported", path=self.path)
        run.write(run.outcome_file, self.outcome(spec.budget.hours * 3600))

    def fault(self, name: str, code: str, why: str) -> None:
        """One malformed file."""
        self.faults.append(ImportFault(path=f"{self.path}/{name}", code=code, why=why))

    def copy(self, run: RunFolder) -> None:
        """Every regular file but the weights: trace, prompt and workspace where ours lie, the rest as it is."""
        places = {PROMPT: run.prompt_file}
        trace = next((name for name in TRACES if (self.source / name).is_file()), None)
        if trace:
            places[trace] = run.stdout
        for entry in sorted(self.source.iterdir()):
            if entry.is_symlink():
                self.fault(entry.name, "LINK", "a link; not followed")
            elif entry.is_file():
                target = places.get(entry.name, run.imported / entry.name)
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(entry, target)
            elif entry.is_dir() and entry.name != "final_model":
                target = run.workspace if entry.name == "task" else run.imported / entry.name
                shutil.copytree(entry, target, symlinks=True)

    # --- records ---

    def outcome(self, limit: float) -> Outcome:
        """How long it took and what it cost; how it ended is not told, unless by the clock."""
        text = text_of(self.source / "time_taken.txt")
        wall = None if text is None else seconds_of(text)
        if text is not None and wall is None:
            self.fault("time_taken.txt", "TIME_MALFORMED", f"{text.strip()[:60]!r} is not H:MM:SS; the time is unknown")
        told = "no time_taken.txt" if text is None else "time_taken.txt does not say" if wall is None else "by its time"
        late = wall is not None and wall >= limit
        usd, tokens_in, tokens_out = self.usage()
        return Outcome(
            ended="time_limit" if late else "unknown",
            why=f"imported; {told}" + ("" if late or wall is None else ": within the limit"),
            exit_code=None,
            signals=(),
            wall_seconds=wall,
            limit_seconds=limit,
            steps=0,
            isolated=False,
            sandbox="not told",
            output_bytes=sum((self.source / name).stat().st_size for name in TRACES if (self.source / name).is_file()),
            output_dropped_bytes=0,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            usd=usd,
            spend_why="as the agent's own trace says" if usd is not None else "the trace names no cost",
        )

    def usage(self) -> tuple[float | None, int | None, int | None]:
        """Dollars, tokens in and out, from a trace's result lines (the last of each session) or Codex's counter."""
        sessions: dict[str, Mapping[str, Any]] = {}
        counted = None
        for name in TRACES:
            if (self.source / name).is_file():
                data = (self.source / name).read_bytes()
                for line in re.findall(rb'\{"type": ?"result".*', data):
                    try:
                        event = json.loads(line)
                    except ValueError:
                        continue
                    sessions[str(event.get("session_id"))] = event
                if found := CODEX_TOKENS.findall(data):
                    counted = sum(int(digits.replace(b",", b"")) for digits in found)
                break
        costs = [event.get("total_cost_usd") for event in sessions.values()]
        usages = [usage for event in sessions.values() if isinstance(usage := event.get("usage"), dict)]
        usd = sum(costs) if costs and all(isinstance(cost, int | float) for cost in costs) else None  # type: ignore[arg-type]
        if not usages:
            return usd, None, counted
        ways = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        read = sum(usage.get(way) or 0 for usage in usages for way in ways)
        return usd, read, sum(usage.get("output_tokens") or 0 for usage in usages)

    def submission(self, measured: Measurement) -> Submission:
        """The weights stay where they are; absent only where neither they nor a number is there."""
        folder = self.source / "final_model"
        files: tuple[File, ...] = ()
        if folder.is_dir():
            large = [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > HASHED]
            files = () if large else list_files(folder)
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            why = f"{size:,} bytes in {self.path}/final_model, left there" + ("; too large to hash" * bool(large))
        else:
            why = "no final_model in the tree" + ("" if measured.value is None else ", but a number for one")
        there = folder.is_dir() and any(folder.iterdir())
        return Submission(
            state="sealed" if there or measured.value is not None else "absent",
            why=why,
            digest=None,
            files=files,
            faults=(),
            tensors=None,
            parameters=None,
            left=(),
        )

    def measurement(self, benchmark: str, items: int) -> Measurement:
        """`accuracy` where it is a finite number in 0..1; else the evaluation failed, and why."""
        text = text_of(self.source / "metrics.json")
        value = error = None
        why = "as published"
        if text is None:
            tries = len(list(self.source.glob("final_eval*.txt")))
            why = f"no metrics.json{f' after {tries} tries' if tries else ''}"
        else:
            try:
                found = json.loads(text)
                value = number(found["accuracy"])
                error = found.get("stderr")
                if value is None:
                    why = f"metrics.json has the accuracy {found['accuracy']!r}, which is no number in 0..1"
                    self.fault("metrics.json", "METRICS_NOT_A_SHARE", why)
            except (ValueError, TypeError, KeyError, AttributeError) as wrong:
                why = f"metrics.json cannot be read ({type(wrong).__name__}: {str(wrong)[:80]})"
                self.fault("metrics.json", "METRICS_MALFORMED", why)
        known = isinstance(error, int | float) and not isinstance(error, bool) and isfinite(error) and error >= 0
        return Measurement(
            benchmark=benchmark,
            seed=None,
            state="failed" if value is None else "measured",
            why=why,
            value=value,
            official=value,
            robust=None,
            n=items if value is not None else 0,
            stderr=float(error) if known and value is not None else None,  # type: ignore[arg-type]
            stops={},
            items=(),
            submission=None,
            settings={"source": "published results tree"},
            log=None,
            wall_seconds=0.0,
            isolated=False,
        )

    # --- verdicts ---

    def spoken(self) -> Iterator[Judgement]:
        """Each judge that left a verdict; a malformed one is `unknown`, and holds."""
        findings, version = self.contamination()
        yield self.judgement("data_contamination", version, findings)
        for judge, (stem, field, rule) in FIELDS.items():
            for suffix in ("_rerun", ""):
                name = f"{stem}{suffix}.json"
                if (text := text_of(self.source / name)) is not None:
                    verdict = self.verdict(name, text, (field,))
                    said = None if verdict is None else verdict[field]
                    version = suffix.strip("_") or "inline"
                    yield self.judgement(judge, version, (self.finding(rule, said, [name], verdict, field),))
                    break

    def judgement(self, judge: str, version: str, findings: tuple[Finding, ...]) -> Judgement:
        """A judge's findings as a record."""
        return Judgement(judge=judge, version=version, findings=findings, isolated=False, wall_seconds=0.0)

    def contamination(self) -> tuple[tuple[Finding, ...], str]:
        """Findings on contamination and on the model, and which layout spoke."""
        fields = tuple(RULES)
        manual = "judgement_gpt5_4_manual.json"
        if (text := text_of(self.source / manual)) is not None:
            return self.both({manual: self.verdict(manual, text, fields)}, "any"), "manual"
        first = next((n for n in named("judgement_gpt5_4") if text_of(self.source / n) is not None), None)
        more = [f"judgement_multi_runs/judgement_gpt5_4_run{number}.json" for number in (2, 3)]
        slots = [name for name in (first, *more) if name and text_of(self.source / name) is not None]
        read = {name: self.verdict(name, text_of(self.source / name) or "", fields) for name in slots}
        if len(read) == 3 and all(verdict is not None for verdict in read.values()):
            return self.both(read, "majority"), "majority of 3"
        voices = {first: read[first]} if first else {}
        second = next((n for n in named("judgement_kimi") if (text := text_of(self.source / n)) is not None), None)
        if second:
            voices[second] = self.verdict(second, text_of(self.source / second) or "", fields)
        if voices:
            return self.both(voices, "any"), "rerun" if first and "_rerun" in first else "inline"
        return self.texts(), "texts of v1"

    def both(self, read: Mapping[str, dict[str, Any] | None], how: str) -> tuple[Finding, ...]:
        """One finding for each field of one or several verdicts."""
        found = []
        for field, rule in RULES.items():
            votes = [None if verdict is None else verdict[field] for verdict in read.values()]
            said = sum(map(bool, votes)) * 2 > len(votes) if how == "majority" else (True in votes)
            unknown = None in votes and not (how == "any" and said)
            verdict = next((v for v in read.values() if v is not None and v[field] == said), None)
            found.append(self.finding(rule, None if unknown else said, list(read), verdict, field))
        return tuple(found)

    def texts(self) -> tuple[Finding, ...]:
        """The verdicts of v1: a whole file that is one of two texts, up to case and the last full stop."""
        found = []
        for field, (stem, yes, no) in TEXTS.items():
            name = next((n for n in named(stem, ".txt") if text_of(self.source / n) is not None), None)
            if name is None:
                continue
            text = (text_of(self.source / name) or "").strip().rstrip(".!").lower()
            said = {yes: True, no: False}.get(text)
            if said is None:
                self.fault(name, "VERDICT_MALFORMED", f"{text[:60]!r} is neither {yes!r} nor {no!r}; no verdict")
            found.append(self.finding(RULES[field], said, [name], None, field))
        return tuple(found)

    def verdict(self, name: str, text: str, fields: tuple[str, ...]) -> dict[str, Any] | None:
        """A verdict whose fields are all truth values; else a fault and none."""
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, dict) and all(isinstance(found.get(field), bool) for field in fields):
            return found
        self.fault(name, "VERDICT_MALFORMED", f"not JSON with {' and '.join(fields)} true or false; no verdict")
        return None

    def finding(
        self, rule: str, said: bool | None, names: list[str], verdict: Mapping[str, Any] | None, field: str
    ) -> Finding:
        """What a published verdict says about one rule, with the files it stands in."""
        given = (verdict or {}).get(f"{field}_justification") or (verdict or {}).get("justification") or ""
        word = {True: "broken", False: "kept", None: "unknown"}[said]
        why = "the verdict's file is malformed" if said is None else f"published verdict {field} = {str(said).lower()}"
        cites = tuple(
            Citation(file=f"imported/{name}", sha256=file_digest(self.source / name), quote=str(given)[:300])
            for name in names
        )
        return Finding(rule=rule, verdict=word, why=why, citations=cites)  # type: ignore[arg-type]


def named(stem: str, ending: str = ".json") -> tuple[str, str]:
    """A file's names in the order in which they count: the rerun first."""
    return f"{stem}_rerun{ending}", f"{stem}{ending}"
