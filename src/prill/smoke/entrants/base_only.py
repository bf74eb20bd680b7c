"""Lazy entrant: submits the base model as it is.

Should be found to be a copy of the base, with the base's own score of about zero.
"""

import json
import os
import shutil
import sys
from pathlib import Path


def tell(kind: str, text: str) -> None:
    """Print one event: a message, a command, or the result of one."""
    print(json.dumps({"kind": kind, "text": text}), flush=True)


def main() -> None:
    """Do what the top of this file says."""
    sys.stdin.read()
    source, target = os.environ["PRILL_BASE_MODEL"], os.environ["PRILL_SUBMISSION"]
    tell("message", "I do not dare to change anything; the base model is my submission.")
    tell("command", f"cp -r {source} {target}")
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    tell("result", f"{len(list(Path(target).iterdir()))} files copied")


if __name__ == "__main__":
    main()
