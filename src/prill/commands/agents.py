"""`prill agents`: the agents' own programs, which npm brings; `prill provider`: a scenario played by hand."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command
from prill.errors import DefinitionError, oneof

if TYPE_CHECKING:
    from prill.catalog import Catalog

INSTALL = """Each version that an entrant of these agents pins is fetched from the npm registry into the cache
($PRILL_CACHE, or `prill` in the user's cache folder), held against the registry's digests, and shown to boxes from
there. No script of a package is run. What is there is left alone."""

PROVIDER = """The scripted provider answers real clients in four wire formats, as a scenario file says, until Ctrl-C:

  prill provider scenarios/hello.toml --port 4141
  ANTHROPIC_BASE_URL=http://127.0.0.1:4141 ANTHROPIC_API_KEY=any claude -p 'Write hello to result.txt'"""


def add(commands: Any) -> None:
    """The commands of this family."""
    agents = commands.add_parser("agents", help="Install and list the agents' own programs").add_subparsers(
        dest="agents_command", metavar="COMMAND", required=True
    )
    fetch = command(agents, "install", "Install the programs that entrants pin, from npm", INSTALL)
    fetch.add_argument("name", nargs="*", metavar="AGENT", help="such as claude_code (default: all that entrants name)")
    fetch.set_defaults(do=install)
    listed = command(agents, "list", "List agents, the versions that entrants pin, and what is installed")
    listed.set_defaults(do=show)
    play = command(commands, "provider", "Play a scenario as a model provider on this machine", PROVIDER)
    play.add_argument("scenario", metavar="SCENARIO", help="a file, or an asset such as scenarios/smoke.toml")
    play.add_argument("--port", type=int, metavar="N", help="on this port of 127.0.0.1 (default: any free one)")
    play.add_argument("--socket", metavar="PATH", help="on this UNIX socket instead")
    play.add_argument("--truth", type=Path, metavar="FILE", help="append what was asked and charged to this file")
    play.set_defaults(do=provider)


def pinned(catalog: "Catalog", wanted: Iterable[str] = ()) -> "dict[tuple[str, str, str], list[str]]":
    """(Agent, package, version) → the entrants that pin it, of the agents that are wanted; all by default."""
    from prill import plugins

    known = plugins.names("agents")
    for name in wanted:
        if name not in known:
            raise DefinitionError(oneof("agent", name, known))
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in catalog.names("entrants"):
        entrant = catalog.entrant(name)
        package = plugins.get("agents", entrant.agent).package
        if package is not None and entrant.version and (not wanted or entrant.agent in wanted):
            found.setdefault((entrant.agent, package, entrant.version), []).append(name)
    return dict(sorted(found.items()))


def install(chosen: argparse.Namespace) -> int:
    """`prill agents install`."""
    from prill import npm
    from prill.catalog import Catalog

    for _, package, version in pinned(Catalog(chosen.definitions), chosen.name):
        found = npm.install(package, version, lambda line: print(line, file=sys.stderr, flush=True))
        print(f"{package}@{version}  {npm.place(package, version)}  {found.integrity.get(package, '')}")
    return 0


def show(chosen: argparse.Namespace) -> int:
    """`prill agents list`."""
    from prill import npm, plugins
    from prill.catalog import Catalog

    versions = pinned(Catalog(chosen.definitions))
    for name in plugins.names("agents"):
        if plugins.get("agents", name).package is None:
            print(f"{name}: needs no package")
    for (agent, package, version), entrants in versions.items():
        state = "installed" if npm.installed(package, version) else "not installed"
        print(f"{agent}: {package}@{version}, {state}; entrants: {', '.join(entrants)}")
    return 0


def provider(chosen: argparse.Namespace) -> int:
    """`prill provider`: the program takes the place of this process."""
    import os

    from prill.catalog import Catalog

    own = Path(chosen.scenario)
    file = own if own.is_file() else Catalog(chosen.definitions).asset(chosen.scenario)
    if chosen.socket and chosen.port is not None:
        raise DefinitionError("give --port N or --socket PATH, not both")
    where = ["--socket", chosen.socket] if chosen.socket else ["--port", str(chosen.port or 0)]
    truth = ["--truth", str(chosen.truth)] if chosen.truth else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "prill.rehearsal", str(file), *where, *truth])
