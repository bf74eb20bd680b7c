"""Unlucky entrant: its submission's weights file is cut off at 60 % of its length.

Should be found to be a submission that cannot be loaded, not one that scores zero.
"""

import json
import os
import shutil
import sys
from pathlib import Path

KEPT_SHARE = 0.6


def tell(kind: str, text: str) -> None:
    """Print one event: a message, a command, or the result of one."""
    print(json.dumps({"kind": kind, "text": text}), flush=True)


def main() -> None:
    """Do what the top of this file says."""
    sys.stdin.read()
    source, target = os.environ["PRILL_BASE_MODEL"], os.environ["PRILL_SUBMISSION"]
    tell("command", f"cp -r {source} {target}")
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    weights = Path(target, "model.safetensors")
    whole = weights.stat().st_size
    with weights.open("r+b") as stream:
        stream.truncate(int(whole * KEPT_SHARE))
    tell("result", f"saved {weights.stat().st_size} of {whole} bytes before the disk was full")
    tell("message", "Done: the model is submitted.")


if __name__ == "__main__":
    main()
