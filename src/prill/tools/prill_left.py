#!/usr/bin/env python3
"""prill-left: what is left of the budget, from a file that the runner writes each second and nobody here can change.

prill-left          "0:12:30 left, $31.07 of $50"
prill-left --json   {"seconds": 750.0, "usd": 31.07}
"""

import argparse
import json
import time
from pathlib import Path

CLOCK = Path(__file__).resolve().parent.parent / "clock.json"


def main() -> None:
    """Print what is left, never below zero; `usd` is null where the suite sets no money limit."""
    options = argparse.ArgumentParser(prog="prill-left", description="What is left of the budget.")
    options.add_argument("--json", action="store_true", help="one JSON object: seconds and usd left")
    chosen = options.parse_args()
    told = json.loads(CLOCK.read_text())
    seconds = max(0.0, told["deadline"] - time.time())
    left = told.get("usd_left")
    if chosen.json:
        print(json.dumps({"seconds": round(seconds, 1), "usd": None if left is None else float(left)}))
    else:
        minutes, rest = divmod(int(seconds), 60)
        money = "" if left is None else f", ${float(left):.2f} of ${float(told['usd_limit']):g}"
        print(f"{minutes // 60}:{minutes % 60:02}:{rest:02} left{money}")


if __name__ == "__main__":
    main()
