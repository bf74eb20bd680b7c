"""`prill selfcheck`: the self-check of a submission on one's own machine, as often as one likes."""

import tempfile
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prill.arguments import command
from prill.errors import DefinitionError, oneof

if TYPE_CHECKING:
    from prill.catalog import Catalog
    from prill.selfcheck import Wanted

FAILED = 3
"""Exit code where a gate failed or could not be tried."""

MORE = """Without --suite only the files are looked at. With one, the package is served by the suite's engine in a box
and asked public items, as the rationed check of a run does it; --limit 0 stays with the files. The package is copied
first, as sealing does, below TMPDIR.

  prill selfcheck final_model
  prill selfcheck final_model --suite smoke --limit 8
  prill selfcheck final_model --suite smoke --limit 0 --json

Exit codes: 0 every gate passed · 3 one did not · 1, 2 as everywhere."""


def add(commands: Any) -> None:
    """`prill selfcheck`."""
    made = command(commands, "selfcheck", "Check a submission before it counts: gates, margins, predicted score", MORE)
    made.add_argument("package", type=Path, metavar="PACKAGE", help="the folder that would be submitted")
    made.add_argument("--suite", metavar="NAME", help="whose engine and benchmarks (default: only the files)")
    made.add_argument("--model", metavar="NAME", help="the base model, where the suite has several")
    made.add_argument("--limit", type=int, default=32, metavar="N", help="items of each benchmark (default: 32)")
    made.add_argument("--engine", metavar="NAME", help="what serves it, instead of the suite's")
    made.add_argument("--sandbox", metavar="NAME", help="what shuts it in, instead of the suite's")
    made.add_argument("--json", action="store_true", help="everything as one JSON object")
    made.set_defaults(do=do)


def do(chosen: Namespace) -> int:
    """Check, print, say by the exit code."""
    import sys

    import msgspec

    from prill import gates
    from prill.catalog import Catalog
    from prill.selfcheck import check

    if not chosen.package.is_dir():
        raise DefinitionError(f"{chosen.package}: no such folder; give the folder that would be submitted")
    if chosen.limit < 0:
        raise DefinitionError(f"--limit {chosen.limit}: at least 0, which looks at the files only")
    catalog = Catalog(chosen.definitions)
    wanted = wanted_of(catalog, chosen)

    def say(words: str) -> None:
        print(f"prill: {words}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="prill-selfcheck-") as scratch:
        made = check(chosen.package, wanted, catalog, Path(scratch), say)
    if chosen.json:
        print(msgspec.json.encode({**msgspec.to_builtins(made), "status": made.status, "passed": made.passed}).decode())
    else:
        print("\n".join(gates.lines(made)))
    return FAILED if made.status == "failed" else 0


def wanted_of(catalog: "Catalog", chosen: Namespace) -> "Wanted":
    """What the command line asks for. Raises `DefinitionError`."""
    from prill import plugins
    from prill.decisions import changed
    from prill.selfcheck import Wanted
    from prill.spec import BaseModel
    from prill.submitted import guessed

    if chosen.suite is None:
        if chosen.model:
            model = catalog.model(chosen.model)
        else:
            model = BaseModel(name="", title="", architecture="", parameters=0, licence="not known")
        return Wanted(model, (), "transformers", "bubblewrap", items=0, submission=guessed(chosen.package))
    suite = catalog.suite(chosen.suite)
    name = chosen.model or suite.models[0]
    if name not in suite.models:
        raise DefinitionError(oneof("model of this suite", name, list(suite.models)))
    if chosen.model is None and len(suite.models) > 1:
        raise DefinitionError(
            f"suite {suite.name} has several models; say which with --model ({', '.join(suite.models)})"
        )
    engine, sandbox = chosen.engine or suite.engine, chosen.sandbox or suite.sandbox
    plugins.get("engines", engine)
    plugins.get("sandboxes", sandbox)
    benchmarks = tuple(changed(catalog.benchmark(each), suite.changes.get(each)) for each in suite.benchmarks)
    return Wanted(catalog.model(name), benchmarks, engine, sandbox, items=chosen.limit, submission=suite.submission)
