"""`prill judge`: a finished run judged once more, a judge overruled by a person, and what differs between verdicts."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command

if TYPE_CHECKING:
    from prill.folder import RunFolder
    from prill.record import Judgement

MORE = """  prill judge runs/ID                            judges that have not spoken yet; with --again all, once more
  prill judge runs/ID --judge panel --panel posttrainbench-1.2 --again
  prill judge override runs/ID --rule lookup --verdict kept --reason 'step 12 is a search' --key me.pem
  prill judge diff runs/ID panel.1 panel.2       what two judgements say differently

A panel asks models: the key of its provider must be in that provider's variable, such as OPENAI_API_KEY; it stays
outside every box. What it may cost is the panel's `usd`; replies and ledger lie beside the findings.

A ruling is signed with an ed25519 key of yours (`openssl genpkey -algorithm ed25519 -out me.pem`). It counts where the
suite lists the public key under `signers` (the middle line of `openssl pkey -in me.pem -pubout`); it always shows."""
VERDICTS = ("kept", "broken", "unknown")


def add(commands: Any) -> None:
    """The one command, with its three forms."""
    made = command(commands, "judge", "Judge a finished run again, overrule a judge, or compare two judgements", MORE)
    made.add_argument(
        "words", nargs="+", metavar="FOLDER", help="a run folder; or `override FOLDER`, `diff FOLDER A B`"
    )
    made.add_argument("--judge", action="append", default=[], metavar="NAME", help="only this one; may be repeated")
    made.add_argument("--panel", metavar="NAME", help="what judge `panel` asks (default: as the run's suite said)")
    made.add_argument("--again", action="store_true", help="also judges that have spoken, beside what they said")
    made.add_argument("--rule", metavar="RULE", help="override: the rule that is ruled on")
    made.add_argument("--verdict", choices=VERDICTS, help="override: what you find")
    made.add_argument("--reason", metavar="WORDS", help="override: why, for anyone to read")
    made.add_argument("--key", type=Path, metavar="PEM", help="override: your private ed25519 key")
    made.set_defaults(do=do)


def do(chosen: argparse.Namespace) -> int:
    """`prill judge`, in whichever form."""
    from prill.errors import DefinitionError

    first, *rest = chosen.words
    if first == "override" and len(rest) == 1:
        return override(chosen, Path(rest[0]))
    if first == "diff" and len(rest) == 3:
        return diff(Path(rest[0]), rest[1], rest[2])
    if rest:
        raise DefinitionError("give FOLDER, or override FOLDER, or diff FOLDER A B")
    return again(chosen, Path(first))


def again(chosen: argparse.Namespace, place: Path) -> int:
    """`prill judge FOLDER`."""
    from prill import plugins
    from prill.catalog import Catalog
    from prill.errors import DefinitionError, oneof
    from prill.folder import RunFolder, decode
    from prill.record import Judgement
    from prill.stages import judge as stage

    catalog, run = Catalog(chosen.definitions), RunFolder(place)
    spec = run.spec()
    known = plugins.names("judges")
    for name in chosen.judge:
        if name not in known:
            raise DefinitionError(oneof("judge", name, known))
    if run.outcome() is None or run.submission() is None:
        raise DefinitionError(
            f"{place}: its agent is not done, or nothing was sealed; `prill run {place}` carries it on"
        )
    with run.lock():
        for name in chosen.judge or spec.judges:
            if run.judgement(name) is not None and not chosen.again:
                print(f"{name}: has spoken ({run.numbered('findings', name)[-1].name}); --again asks it once more")
                continue
            print(f"{name}: judging …", file=sys.stderr, flush=True)
            file = stage.one(run, spec, catalog, name, chosen.panel or spec.panel)
            run.append("judged", "judge", judge=name, file=file.name)
            print("\n".join(told(file.name, decode(file, Judgement))))
            if name not in spec.judges:
                print(f"  {name} is none of the judges of suite {spec.suite}: no standing counts this")
    return 0


def told(name: str, judgement: "Judgement") -> list[str]:
    """A judgement as lines."""
    lines = [f"{name}  {judgement.version or ''}".rstrip()]
    for finding in judgement.findings:
        lines.append(f"  {finding.rule}: {finding.verdict}: {' '.join(finding.why.split())[:300]}")
        for cite in finding.citations:
            where = f"step {cite.step}" if cite.step is not None else f"{cite.file!r}"
            lines.append(f"    {where}: {' '.join(cite.quote.split())[:120]!r}")
    if "usd_spent" in judgement.asked:
        lines.append(f"  ${judgement.asked['usd_spent']} of ${judgement.asked['usd_limit']}")
    return lines


def override(chosen: argparse.Namespace, place: Path) -> int:
    """`prill judge override FOLDER`."""
    import time

    import msgspec

    from prill import plugins
    from prill.audit.signing import sign
    from prill.errors import DefinitionError
    from prill.folder import OVERRIDE, RunFolder
    from prill.record import Finding, Judgement
    from prill.scoring.voices import Ruled

    given = {"--rule": chosen.rule, "--verdict": chosen.verdict, "--reason": chosen.reason, "--key": chosen.key}
    if missing := [name for name, value in given.items() if not value or not str(value).strip()]:
        raise DefinitionError(f"an override needs {', '.join(missing)}")
    run = RunFolder(place)
    read = run.read()
    spoken = [found for name in plugins.names("judges") if (found := run.judgement(name))]
    known = sorted({finding.rule for judgement in (*spoken, *read.judgements) for finding in judgement.findings})
    if chosen.rule not in known:
        raise DefinitionError(f"no judge has spoken of rule {chosen.rule!r} here (there are: {', '.join(known)})")
    finding = Finding(rule=chosen.rule, verdict=chosen.verdict, why=chosen.reason.strip())
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    digest = read.submission.digest if read.submission else None
    ruled = Ruled(run=read.spec.id, submission=digest, findings=(finding,), at=stamp)
    signed = sign(msgspec.json.encode(ruled), chosen.key)
    with run.lock():
        file = run.next_numbered("findings", OVERRIDE)
        made = Judgement(
            judge=OVERRIDE,
            version=stamp,
            findings=(finding,),
            isolated=True,
            wall_seconds=0.0,
            by="person",
            signed=signed,
        )
        run.write(file, made)
        run.append("overridden", "judge", rule=chosen.rule, file=file.name)
    print(f"{file}: {chosen.rule} {chosen.verdict}; it counts where the suite lists this key under signers")
    return 0


def diff(place: Path, before: str, after: str) -> int:
    """`prill judge diff FOLDER A B`: 1 where a verdict differs."""
    from prill.errors import DefinitionError
    from prill.folder import RunFolder, decode, folders
    from prill.panel.changes import changes
    from prill.record import Judgement

    found: list[RunFolder] = folders(place)
    if not found:
        raise DefinitionError(f"{place}: neither a run folder nor a folder of them")
    differs, compared = 0, 0
    for run in found:
        pair = [file_of(run, name) for name in (before, after)]
        if None in pair:
            absent = [name for name, file in zip((before, after), pair, strict=True) if file is None]
            print(f"{run.id}: has no {' and no '.join(absent)}")
            continue
        lines, differ = changes(*(decode(file, Judgement) for file in pair if file))
        compared, differs = compared + 1, differs + differ
        print("\n".join([f"{run.id}: {before} → {after}", *lines]))
    if not compared:
        raise DefinitionError(f"no run below {place} has both {before} and {after}")
    print(f"{compared} runs compared, {differs} verdicts differ")
    return 1 if differs else 0


def file_of(run: "RunFolder", name: str) -> Path | None:
    """A judgement's file by its name, such as `panel.2`; `None` where there is none."""
    stem = name.removesuffix(".json")
    return next((file for file in run.numbered("findings", stem.rpartition(".")[0]) if file.stem == stem), None)
