"""What a submission's files say about it, by codes: may it be loaded at all, and will it be served as it was trained?

Everything is read as hostile bytes: bounded, never executed, never unpickled. `fatal` means that it cannot be loaded
or is not acceptable; a `warning` does not break a submission.
Not covered: what the weights descend from (`lineage.py`), and whether an engine really serves them (`measure` does).
"""

import json
from pathlib import Path
from typing import Any

from prill.checkpoint.tensors import Shard, distinct, read_shard
from prill.record import Fault, Record
from prill.spec import BaseModel

LARGEST_JSON = 4 << 20
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("pytorch_model*.bin", "pytorch_model.bin.index.json", "*.pt", "*.pth", "*.ckpt", "*.pkl")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")


class Report(Record, frozen=True, kw_only=True):
    """What was found in one folder."""

    faults: tuple[Fault, ...]
    tensors: int | None
    parameters: int | None
    """Elements over all distinct tensors; `None` where the weights cannot be read."""


def audit(folder: Path, model: BaseModel) -> Report:
    """Look at the files of a submission that was made from `model`. Does not raise for anything an agent can do."""
    faults: list[Fault] = []
    config = read_config(folder, faults)
    if config and "auto_map" in config:
        faults.append(
            Fault(code="REMOTE_CODE", why="config.json has auto_map: code of a submission is never run; remove it")
        )
    if not any((folder / name).is_file() for name in TOKENIZERS):
        faults.append(Fault(code="TOKENIZER_MISSING", why="no tokenizer.json; save the tokenizer beside the weights"))
    shards = read_weights(folder, faults)
    if not shards:
        return Report(faults=tuple(faults), tensors=None, parameters=None)
    sizes = {tensor.name: tensor.count for shard in shards for tensor in shard.tensors}
    return Report(faults=tuple(faults), tensors=len(sizes), parameters=sum(sizes.values()))


def read_config(folder: Path, faults: list[Fault]) -> dict[str, Any] | None:
    """`config.json`, or `None` beside the fault."""
    if not (folder / "config.json").is_file():
        deeper = sorted(file.parent.name for file in folder.glob("*/config.json"))
        hint = f"; the model lies one folder too deep, in {deeper[0]}/" if deeper else "; save the model's config"
        faults.append(Fault(code="CONFIG_MISSING", why=f"no config.json{hint}"))
        return None
    found, why = read_json(folder / "config.json")
    if found is None:
        faults.append(Fault(code="CONFIG_UNREADABLE", why=f"config.json: {why}"))
    return found


def read_json(file: Path) -> tuple[dict[str, Any] | None, str]:
    """A JSON object of bounded size, or `None` and why not."""
    if file.stat().st_size > LARGEST_JSON:
        return None, f"more than {LARGEST_JSON} bytes"
    try:
        found = json.loads(file.read_bytes().decode(), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        return None, f"not JSON ({str(error)[:200]})"
    return (found, "") if isinstance(found, dict) else (None, "not a JSON object")


def read_weights(folder: Path, faults: list[Fault]) -> list[Shard]:
    """The headers of all weight files that a reader would open."""
    if (folder / INDEX).is_file():
        found, why = read_json(folder / INDEX)
        places = found.get("weight_map") if found else None
        if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
            faults.append(Fault(code="SHARD_MISSING", why=f"{INDEX}: {why or 'no weight_map'}; save it again"))
            return []
        names = sorted(set(places.values()))
    elif (folder / SINGLE).is_file():
        names = [SINGLE]
    elif any(file for pattern in PICKLES for file in folder.glob(pattern)):
        faults.append(
            Fault(code="PICKLE_WEIGHTS", why="only pickled weights, which are never loaded; save as safetensors")
        )
        return []
    else:
        faults.append(Fault(code="WEIGHTS_MISSING", why=f"neither {SINGLE} nor {INDEX}; save the model there"))
        return []
    shards: list[Shard] = []
    for name in names:
        if "/" in name or "\0" in name or not (folder / name).is_file():
            faults.append(Fault(code="SHARD_MISSING", why=f"{INDEX} names {name[:120]!r}, which is not there"))
            continue
        shard, wrong = read_shard(folder / name, name)
        faults += wrong
        shards += [shard] if shard else []
    return shards
