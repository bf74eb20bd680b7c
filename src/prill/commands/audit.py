"""`prill audit …` and `prill verify`: released trees and pinned repositories into bundles that anyone can check."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import RAW, command
from prill.errors import DefinitionError

if TYPE_CHECKING:
    from prill.audit.store import Store
    from prill.catalog import Catalog
    from prill.questions import Audit

AUDIT = """An audit ties each number to the bytes that it comes from. A bundle is a folder of JSON with a page; it opens
from disk, and `prill verify` checks all of it without a network.

  prill audit inventory TREE                      what a released tree holds, with the list behind each number
  prill audit protocol REPO@COMMIT --facts NAME   facts out of a pinned commit, without running or checking out
  prill audit bundle NAME --tree TREE --repo REPO@COMMIT --files DIR --to BUNDLE
  prill verify BUNDLE"""

INVENTORY = """TREE is a folder, a text file with one path a line (alone, or `path TAB bytes [TAB sha256]`, or as
sha256sum prints it; NULs may stand for line breaks), or a zip or tar archive, of which only the index is read."""

PROTOCOL = """COMMIT is the whole id: 40 (or 64) hexadecimal digits. Only git's objects are read: no checkout, no hooks,
no configuration of the repository, nothing of it is run."""

WITNESS = "AUDIT is the name of an audit definition, or a TOML file; its witnesses are looked up below --files."

CLAIMS = "The pointers of the claims are looked up in the JSON files below --evidence, such as an unpacked bundle."

BUNDLE = """What is not given (--tree, --repo, --files) is left out, and parts of claims that rest on it are untested.
Inputs are kept in a store by their digests, so that `prill audit rerun` needs neither the tree nor the repository.
--key signs the statement with an ed25519 key in PEM, by openssl, as a DSSE envelope."""

RERUN = "Nothing but the store is read. The exit code is 1 if anything comes out differently."

VERIFY = """Believes nothing and fetches nothing: every file against the manifest, every JSON file against its record,
every pointer, every digest of a text, every derived number, every value on every page. Faults are named; the exit code
is 1 if there is one."""


def add(commands: Any) -> None:
    """The commands about audits."""
    does = "Tie claims about released results to bytes: inventory, protocol, bundle"
    audit = commands.add_parser("audit", help=does, description=f"{does}.\n\n{AUDIT}", formatter_class=RAW)
    inner = audit.add_subparsers(dest="part", metavar="PART", required=True)
    one = made(inner, "inventory", "Count what a released tree holds", INVENTORY, inventory)
    one.add_argument("tree", type=Path, metavar="TREE")
    one.add_argument(
        "--naming", default="posttrainbench", metavar="NAME", help="how it is named (default: posttrainbench)"
    )
    one.add_argument(
        "--below", default="", metavar="PATH", help="the folder in it that the roots lie in (default: its top)"
    )
    one.add_argument("--hash", action="store_true", help="for a folder: also the digest of every file and task")
    output(one)
    one = made(inner, "protocol", "Read facts out of a pinned commit", PROTOCOL, protocol)
    one.add_argument("repo", metavar="REPO@COMMIT")
    one.add_argument(
        "--facts", default="posttrainbench", metavar="FACTS", help="name, or a TOML file (default: posttrainbench)"
    )
    output(one)
    one = made(
        inner, "witness", "State what verdict files, labels and traces say, and which are absent", WITNESS, witness
    )
    one.add_argument("audit", metavar="AUDIT")
    one.add_argument("--files", type=Path, required=True, metavar="DIR", help="the released tree's folder")
    output(one)
    one = made(inner, "claims", "Hold claims, part by part, against evidence", CLAIMS, claims)
    one.add_argument("audit", metavar="AUDIT")
    one.add_argument("--evidence", type=Path, required=True, metavar="DIR", help="a folder with evidence/*.json")
    output(one)
    bundling(inner)
    one = command(commands, "verify", "Check every file, digest, pointer and number of a bundle, offline", VERIFY)
    one.add_argument("bundle", type=Path, metavar="BUNDLE")
    one.add_argument("--key", type=Path, metavar="PEM", help="the public ed25519 key that must have signed it")
    one.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    one.set_defaults(do=check)


def bundling(inner: Any) -> None:
    """The commands about bundles."""
    one = made(inner, "bundle", "Do a whole audit and write its bundle", BUNDLE, bundle)
    one.add_argument("audit", metavar="AUDIT", help="name of an audit definition, or a TOML file")
    one.add_argument("--tree", type=Path, metavar="TREE", help="for the inventory: folder, listing or archive")
    one.add_argument("--repo", metavar="REPO[@COMMIT]", help="for the protocol (default commit: the audit's)")
    one.add_argument("--files", type=Path, metavar="DIR", help="for the witnesses: the released tree's folder")
    one.add_argument("--hash", action="store_true", help="for a folder as TREE: also the digest of every file")
    one.add_argument("--key", type=Path, metavar="PEM", help="sign with this ed25519 key (default: not signed)")
    one.add_argument("--to", type=Path, required=True, metavar="BUNDLE", help="a folder that is not there yet")
    stored(one)
    one = made(inner, "page", "Make a bundle's page anew from its JSON", "", page)
    one.add_argument("bundle", type=Path, metavar="BUNDLE")
    one.add_argument("--to", type=Path, metavar="FILE", help="into this file (default: standard output)")
    one = made(inner, "rerun", "Do an audit again from its kept inputs, and say what differs", RERUN, again)
    one.add_argument("bundle", type=Path, metavar="BUNDLE")
    one.add_argument("--to", type=Path, metavar="BUNDLE2", help="also write the bundle that comes out")
    stored(one)
    one = made(inner, "diff", "Say what differs between two bundles", "", diff)
    one.add_argument("before", type=Path, metavar="BUNDLE_A")
    one.add_argument("after", type=Path, metavar="BUNDLE_B")


def made(inner: Any, name: str, does: str, more: str, do: Any) -> argparse.ArgumentParser:
    """One command of the family."""
    one = command(inner, name, does, more)
    one.set_defaults(do=do)
    return one


def output(one: argparse.ArgumentParser) -> None:
    """Where the evidence goes."""
    one.add_argument(
        "--to", type=Path, metavar="FILE", help="the evidence as JSON into this file; -: to standard output"
    )


def stored(one: argparse.ArgumentParser) -> None:
    """Where inputs are kept."""
    one.add_argument("--store", type=Path, metavar="DIR", help="kept inputs (default: objects in prill's cache folder)")


# --- what they do -------------------------------------------------------------------------------------------


def catalog_of(chosen: argparse.Namespace) -> "Catalog":
    """The definitions in reach."""
    from prill.catalog import Catalog

    return Catalog(chosen.definitions)


def store_of(chosen: argparse.Namespace) -> "Store":
    """The store of kept inputs."""
    from prill.audit.store import Store
    from prill.items import cache

    return Store(chosen.store or cache() / "objects")


def audit_of(chosen: argparse.Namespace, catalog: "Catalog") -> "tuple[Path, Audit]":
    """An audit's file and what it says: by its name, or as a file."""
    from prill.catalog import read
    from prill.questions import Audit

    if chosen.audit.endswith(".toml"):
        return Path(chosen.audit), read(Path(chosen.audit), Path(chosen.audit).read_bytes(), Audit)
    return catalog.file("audits", chosen.audit), catalog.audit(chosen.audit)


def split_repo(text: str) -> tuple[Path, str | None]:
    """`REPO@COMMIT` as its two parts."""
    repo, sign, commit = text.rpartition("@")
    return (Path(repo), commit) if sign and "/" not in commit else (Path(text), None)


def tell(chosen: argparse.Namespace, record: Any, lines: list[str]) -> int:
    """A record as lines for a person, and as JSON where that was asked for."""
    from prill.audit.making import encoded
    from prill.folder import write_whole

    if chosen.to == Path("-"):
        print(encoded(record).decode(), end="")
        return 0
    if chosen.to is not None:
        write_whole(chosen.to, encoded(record))
    print("\n".join(lines))
    return 0


def inventory(chosen: argparse.Namespace) -> int:
    """`prill audit inventory`."""
    from prill.audit import lines, listing
    from prill.audit.making import inventory_of
    from prill.evidence import Listing
    from prill.folder import file_digest

    catalog = catalog_of(chosen)
    naming = catalog.naming(chosen.naming)
    digest = catalog.digests[f"namings/{naming.name}"].removeprefix("sha256:")
    source = listing.source_of(chosen.tree)
    sha256 = file_digest(chosen.tree) if source.kind == "listing" else None
    about = Listing(
        kind=source.kind, name=chosen.tree.resolve().name, form=source.form, below=chosen.below, sha256=sha256
    )
    found = inventory_of(source, naming, digest, about, hashing=chosen.hash, say=listing.progress)
    return tell(chosen, found, lines.of_inventory(found))


def protocol(chosen: argparse.Namespace) -> int:
    """`prill audit protocol`."""
    import hashlib

    from prill.audit import lines
    from prill.audit.gitobjects import Commit, reading
    from prill.audit.protocol import protocol as facts_of
    from prill.catalog import read
    from prill.questions import FactSet

    repo, commit = split_repo(chosen.repo)
    if commit is None:
        raise DefinitionError(f"{chosen.repo!r}: give REPO@COMMIT with the whole id of a commit")
    catalog = catalog_of(chosen)
    file = Path(chosen.facts) if chosen.facts.endswith(".toml") else catalog.file("facts", chosen.facts)
    text = file.read_bytes()
    facts = read(file, text, FactSet)
    with reading(repo, commit) as objects:
        found = facts_of(Commit(objects, commit), facts, hashlib.sha256(text).hexdigest())
    return tell(chosen, found, lines.of_protocol(found))


def witness(chosen: argparse.Namespace) -> int:
    """`prill audit witness`."""
    from prill.audit import lines
    from prill.audit.witness import gathered, look, opened

    _, audit = audit_of(chosen, catalog_of(chosen))
    if not chosen.files.is_dir():
        raise DefinitionError(f"{chosen.files}: no such folder; give the released tree's folder")
    found = {}
    for one in audit.witnesses:
        file, trouble = opened(chosen.files, one.path)
        found[one.id] = look(one, file, trouble)
        if file is not None:
            file.close()
    made = gathered(found)
    return tell(chosen, made, lines.of_witnesses(made))


def claims(chosen: argparse.Namespace) -> int:
    """`prill audit claims`."""
    from prill.audit import lines
    from prill.audit.claims import assess
    from prill.audit.making import evidence_of

    _, audit = audit_of(chosen, catalog_of(chosen))
    found = assess(audit, evidence_of(chosen.evidence))
    return tell(chosen, found, lines.of_claims(found))


def bundle(chosen: argparse.Namespace) -> int:
    """`prill audit bundle`."""
    from prill.audit.assembly import assemble, now
    from prill.audit.bundle import seal
    from prill.audit.listing import progress
    from prill.audit.making import Sources, gather

    started, store, catalog = now(), store_of(chosen), catalog_of(chosen)
    file, audit = audit_of(chosen, catalog)
    repo, commit = split_repo(chosen.repo) if chosen.repo else (None, None)
    sources = Sources(chosen.tree, chosen.files, repo, commit, chosen.hash)
    inputs = gather(file, audit, sources, store, catalog, progress)
    target = seal(chosen.to, assemble(inputs, store, ["prill", *sys.argv[1:]], started, progress), chosen.key)
    print(target / "index.html")
    return 0


def page(chosen: argparse.Namespace) -> int:
    """`prill audit page`."""
    from prill.audit import assembly
    from prill.folder import write_whole
    from prill.records import bundling
    from prill.records.making import RECORD

    of_record = (chosen.bundle / RECORD).is_file()
    made = (bundling if of_record else assembly).page_again(chosen.bundle)
    if chosen.to is not None:
        write_whole(chosen.to, made)
    else:
        print(made.decode(), end="")
    return 0


def again(chosen: argparse.Namespace) -> int:
    """`prill audit rerun`."""
    from prill.audit.assembly import assemble, now, rerun
    from prill.audit.bundle import seal
    from prill.audit.listing import progress

    store = store_of(chosen)
    provenance, differing = rerun(chosen.bundle, store, progress)
    if chosen.to is not None:
        seal(chosen.to, assemble(provenance.inputs, store, ["prill", *sys.argv[1:]], now()))
    print("\n".join(differing) if differing else "the same evidence and derivations, from the kept inputs")
    return 1 if differing else 0


def diff(chosen: argparse.Namespace) -> int:
    """`prill audit diff`."""
    from prill.audit.assembly import manifest_of, stands
    from prill.audit.bundle import DERIVATIONS
    from prill.audit.changes import changes

    sides = []
    for folder in (chosen.before, chosen.after):
        wanted = [path for path in manifest_of(folder) if path.endswith(".json") and not path.startswith("schemas/")]
        sides.append({path: stands(folder / path) for path in wanted if path != DERIVATIONS})
    found = changes(*sides)
    print("\n".join(found) if found else "nothing differs")
    return 0


def check(chosen: argparse.Namespace) -> int:
    """`prill verify`."""
    from prill.audit import lines, listing
    from prill.audit.verify import verify
    from prill.records.checking import within

    if not chosen.bundle.is_dir():
        raise DefinitionError(f"{chosen.bundle}: no such folder; give a bundle")
    report = verify(chosen.bundle, chosen.key, listing.progress)
    report = report._replace(faults=(*report.faults, *within(chosen.bundle)))
    if chosen.format == "json":
        import json

        told = {"faults": [fault._asdict() for fault in report.faults], "counts": report.counts, "notes": report.notes}
        print(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        print("\n".join(lines.of_report(report)))
    return 1 if report.faults else 0
