"""The acceptance cases of `cases/RULES.md`, for whichever test puts their part to prill.

`PRILL_CASES` names another folder of the same form.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

Case = dict[str, Any]
OWN = Path(__file__).with_name("cases")
CASES = Path(os.environ.get("PRILL_CASES") or OWN)


@cache
def every(folder: Path = CASES) -> tuple[Case, ...]:
    """All cases of a folder and of those in it, by their ids."""
    read = (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("**/*.json"))
    return tuple(sorted(read, key=lambda case: str(case["id"])))


def cases(*parts: str, folder: Path = CASES) -> list[Case]:
    """The cases of these parts."""
    return [case for case in every(folder) if case["part"] in parts]


def case_id(case: Case) -> str:
    """What a test of a case is called."""
    return str(case["id"])
