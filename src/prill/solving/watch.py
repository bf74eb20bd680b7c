"""How the machine fares while an agent works: a line a minute with processor, memory, disk and GPUs.

What cannot be read is left out of the line; it is never zero.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec

EVERY_SECONDS = 60.0
GPU_FIELDS = "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw"


def sample(disk: Path) -> dict[str, Any]:
    """One look at the machine: load, bytes of memory and disk, and what nvidia-smi says of each GPU."""
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return {
        "at": time.time(),
        "load": os.getloadavg()[0],
        "memory_free_bytes": int(memory["MemAvailable"].split()[0]) * 1024,
        "disk_free_bytes": shutil.disk_usage(disk).free,
        "gpus": gpus(),
    }


def gpus(fields: str = GPU_FIELDS) -> list[dict[str, str]]:
    """A row for each GPU of the machine, as nvidia-smi prints it; none where there is no such program."""
    try:
        asked = subprocess.run(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [line.split(", ") for line in asked.stdout.splitlines() if asked.returncode == 0]
    return [dict(zip(fields.split(","), row, strict=False)) for row in rows]


class Sampler:
    """Writes a line whenever a minute has passed."""

    def __init__(self, file: Path) -> None:
        self.file, self.next = file, 0.0

    def tick(self) -> None:
        """Sample if it is time."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + EVERY_SECONDS
        with self.file.open("ab") as file:
            file.write(msgspec.json.encode(sample(self.file.parent)) + b"\n")
