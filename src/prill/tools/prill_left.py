#!/usr/bin/env python3
"""prill-left: what is left of the budget, read from the clock that the runner wrote before you began.

prill-left          "0:12:30 left"
prill-left --json   {"seconds": 750.0, "usd": null}
"""

import argparse
import json
import time
from pathlib import Path

CLOCK = Path(__file__).resolve().parent.parent / "clock.json"


def main() -> None:
    """Print the time left, never below zero; `usd` is null where the suite sets no money limit."""
    options = argparse.ArgumentParser(prog="prill-left", description="What is left of the budget.")
    options.add_argument("--json", action="store_true", help="one JSON object: seconds and usd left")
    chosen = options.parse_args()
    deadline = json.loads(CLOCK.read_text())["deadline"]
    seconds = max(0.0, deadline - time.time())
    if chosen.json:
        print(json.dumps({"seconds": round(seconds, 1), "usd": None}))
    else:
        minutes, rest = divmod(int(seconds), 60)
        print(f"{minutes // 60}:{minutes % 60:02}:{rest:02} left")


if __name__ == "__main__":
    main()
