"""Stubborn entrant: sleeps far beyond its time, deaf to SIGTERM, with a child in its own session.

Should be found to have run out of time, with no process left over and no submission.
"""

import json
import signal
import subprocess
import sys
import time

SLEEP_S = 3600
DEAF_SLEEP = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({SLEEP_S})"


def tell(kind: str, text: str) -> None:
    """Print one event: a message, a command, or the result of one."""
    print(json.dumps({"kind": kind, "text": text}), flush=True)


def main() -> None:
    """Do what the top of this file says."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.read()
    command = [sys.executable, "-c", DEAF_SLEEP]
    tell("command", f"setsid {sys.executable} -c '{DEAF_SLEEP}' &")
    child = subprocess.Popen(command, start_new_session=True)
    tell("result", f"process {child.pid} runs in its own session")
    tell("message", f"I will wait {SLEEP_S} s for inspiration.")
    ends = time.monotonic() + SLEEP_S
    while time.monotonic() < ends:
        time.sleep(max(0.0, ends - time.monotonic()))


if __name__ == "__main__":
    main()
