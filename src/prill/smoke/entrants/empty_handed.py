"""Talking entrant: writes a plan, submits nothing and ends with exit code 0.

Should be found to have left no submission, however well it ended.
"""

import json
import sys
from pathlib import Path


def tell(kind: str, text: str) -> None:
    """Print one event: a message, a command, or the result of one."""
    print(json.dumps({"kind": kind, "text": text}), flush=True)


def main() -> None:
    """Do what the top of this file says."""
    sys.stdin.read()
    plan = "1. Look at the data.\n2. Fine-tune the base.\n3. Evaluate and submit.\n"
    tell("message", "First I make a plan.")
    tell("command", "write plan.md")
    Path("plan.md").write_text(plan)
    tell("result", plan)
    tell("message", "The plan is ready, so the task is done.")


if __name__ == "__main__":
    main()
