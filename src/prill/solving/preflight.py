"""What is looked at before anything is spent: disk, GPUs, the agent's program, the key. Whatever is wrong is ours."""

import shutil
import urllib.error
import urllib.request
from pathlib import Path

from prill.errors import InfraError
from prill.gateway.keys import keys
from prill.outside import Provider
from prill.sockets import Box, Command
from prill.solving.watch import gpus
from prill.spec import RunSpec


def disk(path: Path, need_gb: float) -> None:
    """Refuse to begin on a disk that the run could fill."""
    free = shutil.disk_usage(path).free
    if free < need_gb * 2**30:
        raise InfraError(
            f"{path}: {free / 2**30:.1f} GB free, but the suite reserves {need_gb:g} GB for a run (budget.disk_gb); "
            "free some, or give another place with --runs"
        )


def graphics(spec: RunSpec) -> None:
    """As many GPUs as the suite wants, of the kind that it wants, with nothing else at work on them."""
    if not spec.budget.gpus:
        return
    found = gpus("index,name,memory.used")
    if len(found) < spec.budget.gpus:
        raise InfraError(f"the suite wants {spec.budget.gpus} GPUs, nvidia-smi shows {len(found)}; use another machine")
    for each in found[: spec.budget.gpus]:
        kind = spec.budget.gpu_kind
        if kind and kind.lower() not in each["name"].lower():
            raise InfraError(f"GPU {each['index']} is a {each['name']}, the suite wants {kind}; use another machine")
        if each["memory.used"].isdigit() and int(each["memory.used"]) > 1024:
            raise InfraError(f"GPU {each['index']} is busy ({each['memory.used']} MiB in use); end what runs on it")


def starts(box: Box, command: Command, scratch: Path) -> None:
    """The agent's program can be started at all, with its own `--version`; its words are in the error."""
    out = scratch / "version"
    ended = box.run(
        Command(argv=(command.argv[0], "--version"), env=command.env, cwd=command.cwd),
        stdout=out,
        stderr=out.with_suffix(".err"),
        limit_seconds=60,
    )
    if ended.exit_code != 0:
        words = (out.read_text(errors="replace") + out.with_suffix(".err").read_text(errors="replace")).strip()
        raise InfraError(
            f"{command.argv[0]} --version does not work in the box (exit {ended.exit_code}): {words[-800:]}"
        )


def secret(provider: Provider) -> str | None:
    """The key as the gateway reads it at this moment; `InfraError` where one is wanted and not there."""
    key, name = keys(provider)(), provider.key_file or provider.key
    if name and not key:
        what = "a file with the token" if provider.key_file else "the key"
        raise InfraError(f"provider {provider.name}: set {name} to {what}; it stays outside the box")
    return key


def keyed(spec: RunSpec) -> dict[str, str]:
    """The keys of all whose models the run may call, by their variables; each of them can be reached."""
    found = {}
    for provider in filter(None, (spec.provider, spec.teacher)):
        answers(provider)
        if key := secret(provider):
            found[provider.key or provider.key_file or "KEY"] = key
    return found


def answers(provider: Provider) -> None:
    """The provider can be reached and does not refuse the key, by a request that costs nothing."""
    key = secret(provider)
    if not provider.url or not key:
        return
    value = f"Bearer {key}" if provider.header == "authorization" else key
    path = "/v1beta/models" if "gemini" in provider.wires else "/v1/models"
    request = urllib.request.Request(provider.url + path, headers={**provider.headers, provider.header: value})
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            name = provider.key or provider.key_file
            raise InfraError(f"provider {provider.name} refuses the key in {name} (status {error.code})") from None
    except OSError as error:
        raise InfraError(f"provider {provider.name} cannot be reached at {provider.url}: {error}") from None
