"""What was submitted: a folder of weights, or a package that serves the weights in its `model/` by its own `serve.sh`.

The one place that knows a package's shape; docs/reference/packages.md tells it to whoever makes one.
Not covered: whether `serve.sh` really serves those weights (judge `inference`), and what they are (judge `lineage`).
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from prill.record import Fault

Shape = Literal["weights", "served"]
START, MODEL, TRAIN = "serve.sh", "model", "train"


def weights(folder: Path, shape: Shape) -> Path:
    """Where the weights of a submission lie."""
    return folder / MODEL if shape == "served" else folder


def guessed(folder: Path) -> Shape:
    """The shape of a folder of which nobody has said it."""
    return "served" if regular(folder / START) else "weights"


def faults(folder: Path, shape: Shape) -> Iterator[Fault]:
    """What a package lacks; nothing of weights alone."""
    if shape != "served":
        return
    if not regular(folder / START):
        yield Fault(code="START_MISSING", why=f"no {START}, which starts the server: put it at the top of the package")
    if not folder.joinpath(MODEL).is_dir():
        yield Fault(code="MODEL_MISSING", why=f"no folder {MODEL}/ with the weights, the config and the tokenizer")
    if not folder.joinpath(TRAIN).is_dir():
        why = f"no folder {TRAIN}/ with the scripts and the manifest of the data; a reviewer has nothing to read"
        yield Fault(code="TRAIN_MISSING", why=why, severity="warning")


def regular(file: Path) -> bool:
    """Whether a regular file has that name; a link is none."""
    try:
        return stat.S_ISREG(os.lstat(file).st_mode)
    except (OSError, ValueError):
        return False
