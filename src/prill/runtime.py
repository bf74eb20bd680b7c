"""Which host folders a Python program needs in a box, and the environment that makes it quiet and offline.

The agent's box gets the interpreter and its installed packages, never prill itself; our own boxes get prill too.
"""

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "warning",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "LANG": "C.UTF-8",
}
"""For every box: no hub, no telemetry, output as it comes; passive OpenMP, because boxes share the cores."""

ACCELERATOR = ("CUDA_VISIBLE_DEVICES", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Host variables that a box inherits where they are set: which devices are ours, which kernels are sound here."""


def folders() -> tuple[Path, ...]:
    """The running interpreter and its installed packages."""
    places = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()}
    return tuple(sorted(place for place in places if place != Path("/usr")))


def package_root() -> Path:
    """The folder that `import prill` needs on its path."""
    return PACKAGE.parent


def hidden() -> tuple[Path, ...]:
    """Folders of prill inside `folders()`, which the agent's box must cover up."""
    return tuple(PACKAGE for place in folders() if PACKAGE.is_relative_to(place))[:1]


def gpus() -> tuple[Path, ...]:
    """Devices of the machine's NVIDIA GPUs; none where there are none."""
    return tuple(sorted(place for place in Path("/dev").glob("nvidia*") if place.is_char_device()))


def environment() -> dict[str, str]:
    """Variables for any box: a path to our interpreter, and quiet."""
    inherited = {name: os.environ[name] for name in ACCELERATOR if name in os.environ}
    return {**QUIET, **inherited, "PATH": f"{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
