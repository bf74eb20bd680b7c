"""Engine `vllm`: `vllm serve`, one server per submission; the default where there are GPUs.

The tool-call parser goes by architecture, never by a path; a chat template is given only where the suite prescribes
one; remote code stays off; `--generation-config auto` makes the submission's own sampling the default, as published.
`PRILL_VLLM` names the folder of a Python environment that has vLLM, if it is not prill's own. A build for CPUs is told
by its version, as vLLM itself does. Not covered: several nodes, quantised caches, LoRA.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prill.errors import InfraError
from prill.record import Contract
from prill.serving import free_port, server
from prill.sockets import Box, Command, Endpoint
from prill.spec import BaseModel

ENVIRONMENT = "PRILL_VLLM"
PARSERS = {"qwen": "hermes", "gemma": "hermes", "smollm": "hermes", "llama": "llama3_json"}
"""Family → how its tool calls are written, as published."""
GPU_MEMORY = "0.9"
CPU_CACHE_GB = "1"
PROCESSORS = Path("/sys/devices/system")
"""A build for CPUs asks `lscpu` which cores there are, and that reads here."""
TEMPLATE = "/tmp/chat_template.jinja"
QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
"""Our own packages must not be found before those of vLLM's environment."""


class Vllm:
    """One server for one model folder."""

    def __init__(self, start_seconds: float = 600.0) -> None:
        """`start_seconds`: until the first generation must have finished; loading and warming up included."""
        self.start_seconds = start_seconds

    def folders(self) -> tuple[Path, ...]:
        """vLLM's environment and the interpreter that it was made with; for CPUs, what they are."""
        named = os.environ.get(ENVIRONMENT)
        if not named:
            return ()
        place = environment(named)
        interpreter = (place / "bin" / "python").resolve().parents[1]
        shown = [place] if interpreter == Path("/usr") else [place, interpreter]
        return (*shown, PROCESSORS) if installed(named)[1].endswith("cpu") else tuple(shown)

    @contextmanager
    def serve(
        self, submission: str, model: BaseModel, box: Box, logs: Path, contract: Contract | None = None
    ) -> Iterator[Endpoint]:
        """Serve until the context ends. The server's output goes to `logs/server.txt`."""
        folder, port = box.path(submission), free_port()
        program, version = installed(os.environ.get(ENVIRONMENT))
        cpu = version.endswith("cpu")
        options = arguments(contract, cpu)
        if contract is not None and contract.suite_template is not None:
            (logs / "chat_template.jinja").write_text(contract.suite_template, encoding="utf-8")
            box.put(logs / "chat_template.jinja", TEMPLATE)
            options += ("--chat-template", box.path(TEMPLATE))
        argv = (program, "serve", folder, "--host", "127.0.0.1", "--port", str(port), *options)
        command = Command(argv=argv, cwd=box.path("/tmp"), env=variables(program, cpu))
        url = f"http://127.0.0.1:{port}/v1"
        with server(box, command, url, folder, logs, self.start_seconds, contract):
            settings = {"engine": "vllm", "vllm": version, "arguments": " ".join(options)}
            yield Endpoint(url=url, model=folder, settings=settings)


def arguments(contract: Contract | None, cpu: bool) -> tuple[str, ...]:
    """Options of `vllm serve` beside the folder, the address and the template. Pure."""
    options: tuple[str, ...] = ("--dtype", "bfloat16", "--generation-config", "auto")
    options += ("--enforce-eager",) if cpu else ("--gpu-memory-utilization", GPU_MEMORY)
    if contract is not None and contract.context is not None:
        options += ("--max-model-len", str(contract.context))
    if contract is not None and contract.tools and contract.family is not None:
        options += ("--enable-auto-tool-choice", "--tool-call-parser", PARSERS[contract.family])
    return options


def variables(program: str, cpu: bool) -> dict[str, str]:
    """Variables of the server. A CPU build has no memory of its own to size its cache by."""
    given = dict(QUIET)
    if "/" in program:
        given["PATH"] = f"{Path(program).parent}:/usr/local/bin:/usr/bin:/bin"
    if cpu:
        given["VLLM_CPU_KVCACHE_SPACE"] = os.environ.get("VLLM_CPU_KVCACHE_SPACE", CPU_CACHE_GB)
        given["OMP_NUM_THREADS"] = str(len(os.sched_getaffinity(0)))
    return given


def installed(named: str | None) -> tuple[str, str]:
    """The program and its version. `InfraError` where there is none."""
    from importlib.metadata import PackageNotFoundError, version

    if named:
        place = environment(named)
        found = sorted(place.glob("lib/python3*/site-packages/vllm-*.dist-info"))
        if found:
            return str(place / "bin" / "vllm"), found[0].name.removeprefix("vllm-").removesuffix(".dist-info")
        raise InfraError(f"{ENVIRONMENT} is {named}, but no vllm is installed there; name an environment that has it")
    try:
        return "vllm", version("vllm")
    except PackageNotFoundError:
        raise InfraError(
            f"vllm is not installed: `pip install prill[gpu]`, or name an environment that has it in {ENVIRONMENT}"
        ) from None


def environment(named: str) -> Path:
    """The folder of a Python environment. `InfraError` for what is none."""
    place = Path(named).expanduser().resolve()
    if not (place / "bin" / "vllm").is_file():
        raise InfraError(f"{ENVIRONMENT} is {named}, which has no bin/vllm; name the folder of an environment")
    return place


plugin = Vllm()
