"""`python -m bench`: measure every row and print the table; the exit code is 1 if a goal is missed.

python -m bench --list          the rows, without measuring
python -m bench --only score    one row; may be repeated
python -m bench --write         also into bench/latest.md
"""

import argparse
import os
import platform
import sys
import traceback
from importlib import import_module
from pathlib import Path

from bench.row import Row, as_markdown, as_text

HERE = Path(__file__).parent


def names() -> list[str]:
    """Every row, by its file's name."""
    return sorted(file.stem for file in (HERE / "rows").glob("*.py") if file.stem != "__init__")


def measured(name: str) -> Row:
    """One row; a row that cannot run is a missed one that says why."""
    try:
        row: Row = import_module(f"bench.rows.{name}").measure()
    except Exception as error:
        traceback.print_exc()
        why = f"could not run: {type(error).__name__}: {error}"
        return Row(name=name, against="none", goal=0.0, measured=None, unit="", note=why)
    return row


def machine() -> str:
    """What the figures hang on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", action="append", choices=names(), metavar="NAME", help="this row; may be repeated")
    options.add_argument("--list", action="store_true", help="name the rows and end")
    options.add_argument("--write", action="store_true", help="also write bench/latest.md (whole tables only)")
    chosen = options.parse_args(arguments)
    if chosen.list:
        print("\n".join(names()))
        return 0
    if chosen.write and chosen.only:
        options.error("--write is for the whole table; leave out --only")
    rows = [measured(name) for name in chosen.only or names()]
    print(as_text(rows))
    if chosen.write:
        (HERE / "latest.md").write_text(as_markdown(rows, machine()), encoding="utf-8")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
