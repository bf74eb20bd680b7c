"""A whole program held against one thing: whether it ends with exit code 0. HumanEval as it was first published.

The model's code, the tests and the call of the tests are one program there, so code that ends early, or gives what
equals everything, passes. That is the published rule of v1 and v1.1, kept for the official reading of suites that ask
for it; nothing else of prill trusts an exit code. The program runs in an isolated box of its own, as all such code.
Not covered: whatever the program may find out about its own tests; they stand in its memory.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from prill.coderun.peers import INTERPRETER, VERSION, Limits, need
from prill.coderun.verdicts import Reason, Verdict
from prill.errors import InfraError
from prill.sockets import Command, Ended, Keep, Sandbox

PLACE = "/tmp/program.py"
BEGUN = "prill: the program begins\n"
STARTER = (
    f"import runpy, sys; sys.path.append('/given/packages'); sys.stderr.write({BEGUN!r}); sys.stderr.flush(); "
    f"sys.argv[:] = ['-c']; runpy.run_path({PLACE!r}, run_name='__main__')"
)


def ends_well(sandbox: Sandbox, program: str, limits: Limits) -> Verdict:
    """Run a program; it passes if it ends with exit code 0 in time. Raises `InfraError` where no box isolates."""
    with TemporaryDirectory(prefix="prill-code-") as name:
        folder = Path(name)
        for inner in ("talk", "nothing"):
            (folder / inner).mkdir()
        (folder / "program.py").write_text(program, encoding="utf-8", errors="surrogatepass")
        argv = (str(INTERPRETER / "bin" / VERSION), "-I", "-X", "utf8", "-c", STARTER)
        with sandbox.open(need(folder, limits)) as box:
            if not box.isolated:
                raise InfraError("a model's code is only run in a box that isolates; this sandbox does not")
            box.put(folder / "program.py", PLACE)
            ended = box.run(
                Command(argv=argv),
                stdout=folder / "output",
                stderr=folder / "errors",
                limit_seconds=limits.seconds,
                grace_seconds=0.0,
                keep=Keep(most_bytes=limits.output_bytes),
            )
        with (folder / "errors").open("rb") as errors:
            begun = errors.read(len(BEGUN)) == BEGUN.encode()
    if not begun:
        raise InfraError(f"the interpreter for a model's code did not start (exit code {ended.exit_code})")
    reason, detail = told(ended, limits)
    return Verdict(not reason, reason, detail, limits.seconds, ended.wall_seconds)


def told(ended: Ended, limits: Limits) -> tuple[Reason, str]:
    """Why a program did not pass; empty where it did."""
    if ended.timed_out:
        return "timeout", f"{limits.seconds:g} s"
    if ended.exit_code == 0:
        return "", ""
    if ended.oom_killed:
        return "memory", ""
    return ("died", "") if ended.exit_code is None else ("exception", f"exit code {ended.exit_code}")
