#!/usr/bin/env python3
"""self-check: has $PRILL_SUBMISSION looked at, served and asked as it will be when it counts, in another box.

    self-check          does one check; they are rationed, and your time goes on meanwhile
    self-check --left   how many are left
    self-check --json   one JSON object: status, gates, shares, predicted score, how many are left

A check holds for the files as they are: any later change makes it stale, and that is written down. Free the GPU first:
the server of the check needs room on it. Exit codes: 0 passed, 1 failed, 2 refused or not possible.
"""

import argparse
import json
import os
import socket
import sys
from pathlib import Path

SOCKET = Path(__file__).resolve().parent.parent / "doors" / "check.sock"


def main() -> int:
    """Ask, show what comes."""
    options = argparse.ArgumentParser(
        prog="self-check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--left", action="store_true", help="only say how many are left")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = options.parse_args()
    with socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect(os.environ.get("PRILL_CHECK") or str(SOCKET))
        except OSError as error:
            print(f"self-check: nobody answers at the door ({error.strerror})", file=sys.stderr)
            return 2
        door.sendall(json.dumps({"do": "left" if chosen.left else "check"}).encode() + b"\n")
        for line in door.makefile("rb"):
            told = json.loads(line)
            if "say" in told:
                print(f"self-check: {told['say']}", file=sys.stderr, flush=True)
            else:
                return show(told, chosen.json)
    print("self-check: the door was closed before the check was done", file=sys.stderr)
    return 2


def show(told: dict[str, object], as_json: bool) -> int:
    """The last word: what was found, what is left, or why nothing was done."""
    if as_json:
        print(json.dumps({name: value for name, value in told.items() if name != "lines"}))
    else:
        lines = told.get("lines")
        for line in lines if isinstance(lines, list) else ():
            print(line)
        if "refused" in told:
            print(f"self-check: {told['refused']}", file=sys.stderr)
        print(f"{told['left']} of {told['granted']} self-checks left")
    result = told.get("result")
    if isinstance(result, dict):
        return 1 if result["status"] == "failed" else 0
    return 2 if "refused" in told else 0


if __name__ == "__main__":
    sys.exit(main())
