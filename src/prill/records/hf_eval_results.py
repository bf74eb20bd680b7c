"""Hugging Face's eval results: a YAML file for the `.eval_results/` folder of a model repository.

Source of the rules: `huggingface_hub` (`EvalResultEntry`), which the tests hold our files against. A file there names a
data set of the hub and a task of it; a record does not, so whoever exports says which.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prill.audit.making import encoded
from prill.audit.pointers import Unsound, read_json
from prill.errors import DefinitionError, InfraError
from prill.records.losses import Loss, Sent, fetched, places
from prill.records.making import Making, identity, values
from prill.reported import ResultRecord

KEPT = ("value", "date")
LARGEST, MOST_BRACKETS = 64_000, 200
"""Bytes and opening brackets of a file: reading YAML takes more than linear time."""
NATIVE: dict[str, tuple[str | int, ...]] = {
    "value": (0, "value"),
    "date": (0, "date"),
    "benchmark": (0, "dataset", "id"),
    "split": (0, "dataset", "task_id"),
    "task_snapshot": (0, "dataset", "revision"),
    "provenance": (0, "source", "name"),
}


def export(record: ResultRecord, files: Mapping[str, bytes], dataset: str | None, task: str | None) -> Sent:
    """One file with one entry. Raises `DefinitionError` where data set, task or value are missing."""
    told = {name: one.value for name, one in values(record).items()}
    if not dataset or not task:
        raise DefinitionError(
            "hf-eval-results names a data set of the hub and its task: give --dataset ID and --task ID"
        )
    if "value" not in told:
        raise DefinitionError(f"{record.id}: no value ({record.not_reported.get('value')}), and this form requires one")
    entry: dict[str, Any] = {"dataset": {"id": dataset, "task_id": task}, "value": told["value"]}
    if "date" in told:
        entry["date"] = told["date"]
    if url := next((source.url for source in record.sources.values() if source.url), None):
        entry["source"] = {"url": url}
    entry["notes"] = notes(record, told)
    return Sent({"record.yaml": yaml(entry).encode()}, tuple(losses(told, record)))


def notes(record: ResultRecord, told: Mapping[str, Any]) -> str:
    """What a reader of the hub should know beside the number, in one line."""
    parts = [str(told[name]) for name in ("title", "metric", "unit") if name in told]
    if "dispersion" in told:
        parts.append(f"± {told['dispersion']} ({told.get('dispersion_kind', 'dispersion')})")
    parts.append(f"record {record.id} version {record.version}")
    if record.retracted:
        parts.append(f"RETRACTED {record.retracted.date}: {record.retracted.why}")
    return "; ".join(" ".join(part.split()) for part in parts)


def losses(told: Mapping[str, Any], record: ResultRecord) -> Iterator[Loss]:
    """What has no place there."""
    yield from places(record)
    gone = [name for name in told if name not in KEPT]
    yield Loss(f"{len(gone)} fields", f"at most in the notes, in words: {', '.join(gone)}")
    yield Loss("not_reported", f"the reasons of {len(record.not_reported)} fields")
    yield Loss("id, version, supersedes, retracted", "at most in the notes, in words")


def yaml(entry: Mapping[str, Any]) -> str:
    """One entry as YAML's block form; texts and numbers as JSON, which YAML reads alike."""
    lines = []
    for key, value in entry.items():
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {name}: {scalar(inner)}" for name, inner in value.items())]
        else:
            lines.append(f"{key}: {scalar(value)}")
    return "".join(f"{'- ' if not number else '  '}{line}\n" for number, line in enumerate(lines))


def scalar(value: Any) -> str:
    """A text or number."""
    return encoded(value).decode().strip()


def bring(data: bytes, name: str, day: str) -> tuple[ResultRecord, dict[str, bytes]]:
    """A record of a file's one entry. Raises `Unsound` for what is no such file."""
    entries = loaded(data)
    if not isinstance(entries, list) or len(entries) != 1:
        raise Unsound("SCHEMA", "not a list with one entry; a record is one result, so split the file")
    entry = entries[0]
    shaped = isinstance(entry, dict) and isinstance(entry.get("dataset"), dict)
    if not shaped or not {"id", "task_id"} <= entry["dataset"].keys() or "value" not in entry:
        raise Unsound("SCHEMA", "an entry has dataset.id, dataset.task_id and value")
    if isinstance(entry["value"], bool) or not isinstance(entry["value"], int | float):
        raise Unsound("SCHEMA", "a record's value is a number")
    making = Making()
    making.json("import", "import.json", encoded(entries), f"{name}, a Hugging Face eval result, as JSON", day=day)
    making.text("file", data, name, day=day)
    fetched(making, "import", NATIVE, (), {})
    return making.record(identity(entries), day), making.files


def loaded(data: bytes) -> Any:
    """YAML without aliases, tags of its own, or keys that stand twice. Raises `Unsound`."""
    if len(data) > LARGEST:
        raise Unsound("TOO_LARGE", f"more than {LARGEST:,} bytes for one entry")
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS:
        raise Unsound("TOO_DEEP", f"more than {MOST_BRACKETS} brackets in one entry")
    try:
        import yaml as reader
    except ImportError:
        raise InfraError("PyYAML is not installed; `pip install pyyaml` to read eval results of the hub") from None

    class Plain(reader.SafeLoader):  # type: ignore[misc]
        """Refuses what two readers could understand differently."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            """No aliases."""
            if self.check_event(reader.events.AliasEvent):
                raise Unsound("MALFORMED", "aliases are not allowed")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            """No key twice."""
            keys = [key.value for key, _ in node.value]
            if len(set(map(str, keys))) != len(keys):
                raise Unsound("DUPLICATE_KEY", "a key stands twice in one object")
            return super().construct_mapping(node, deep)

    try:
        made = Plain(data.decode()).get_single_data()
        return read_json(encoded(texts(made)))
    except Unsound:
        raise
    except RecursionError:
        raise Unsound("TOO_DEEP", "nested too deep") from None
    except (reader.YAMLError, UnicodeDecodeError, ValueError, TypeError, OverflowError) as error:
        raise Unsound("MALFORMED", f"not YAML of plain values: {' '.join(str(error).split())[:200]}") from None


def texts(value: Any) -> Any:
    """Dates as text, which YAML makes of them by itself."""
    if isinstance(value, dict):
        return {str(key): texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [texts(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
