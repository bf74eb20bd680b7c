"""A log that only grows: one JSON object a line, written at once, up to a size beyond which nothing more happens.

Lines are handed to the kernel one by one, so a killed process loses none. Not covered: a machine that loses power.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
MOST_TEXT = 2000
"""Characters that are kept of any one value: what is asked for is hostile and may be long."""


class Logbook:
    """Open until closed; lines may come from several threads."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._most, self._lock = most_bytes, threading.Lock()

    def full(self) -> bool:
        """Whether so much was logged that the door should close: what can't be logged is not to be done."""
        return os.fstat(self._file).st_size > self._most

    def write(self, **fields: Any) -> None:
        """One line."""
        kept = {name: value[:MOST_TEXT] if isinstance(value, str) else value for name, value in fields.items()}
        line = json.dumps(kept, ensure_ascii=True).encode() + b"\n"
        with self._lock:
            while line:
                line = line[os.write(self._file, line) :]

    def close(self) -> None:
        """No more lines."""
        os.close(self._file)
