"""Every Eval Ever, schema 0.2.1: one JSON file a record, with one evaluation result.

Source of the rules: `eval.schema.json` of the repository evaleval/every_eval_ever, which ships no validator that could
be installed; `faults` holds a file against what that schema requires. Its `standard_deviation` is that of the samples,
so a spread over seeds does not go there; its details hold texts only.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prill.audit.making import encoded
from prill.audit.pointers import Unsound, read_json
from prill.errors import DefinitionError
from prill.records.losses import Loss, Sent, carried, fetched, places
from prill.records.making import Making, identity, values
from prill.reported import ResultRecord

SCHEMA = "0.2.1"
RESULT = ("evaluation_results", 0)
DETAILS = (*RESULT, "score_details", "details")
NATIVE: dict[str, tuple[str | int, ...]] = {
    "value": (*RESULT, "score_details", "score"),
    "benchmark": (*RESULT, "evaluation_name"),
    "metric": (*RESULT, "metric_config", "evaluation_description"),
    "interval_low": (*RESULT, "score_details", "uncertainty", "confidence_interval", "lower"),
    "interval_high": (*RESULT, "score_details", "uncertainty", "confidence_interval", "upper"),
    "date": ("evaluation_timestamp",),
    "evaluator_version": ("eval_library", "version"),
    "model": ("model_info", "name"),
}
"""Field → its own place. What is not reported is left out there, or `UNKNOWN` where the schema wants a text."""
UNKNOWN = "unknown"
MOST = {"percent": 100.0, "share": 1.0}


def export(record: ResultRecord, files: Mapping[str, bytes]) -> Sent:
    """One file. Raises `DefinitionError` for a result without a value, which the schema has no place for."""
    told = {name: one.value for name, one in values(record).items()}
    if "value" not in told:
        raise DefinitionError(f"{record.id}: no value ({record.not_reported.get('value')}), and this form requires one")
    urls = [source.url for source in record.sources.values() if source.url]
    name = told.get("benchmark", UNKNOWN)
    data: dict[str, Any] = {"dataset_name": name, "source_type": "url" if urls else "other"}
    moment = str(int(datetime.fromisoformat(record.made).replace(tzinfo=UTC).timestamp()))
    model = told.get("model", UNKNOWN)
    uncertainty = {}
    if {"interval_low", "interval_high"} <= told.keys():
        bounds = {"lower": told["interval_low"], "upper": told["interval_high"], "confidence_level": 0.95}
        uncertainty = {"uncertainty": {"confidence_interval": bounds}}
    own = {"prill.id": record.id, "prill.version": str(record.version), "prill.made": record.made}
    if record.retracted:
        own["prill.retracted"] = f"{record.retracted.date}: {record.retracted.why}"
    native = [field for field in NATIVE if field in told]
    result = {
        "evaluation_name": name,
        "source_data": data | ({"url": urls} if urls else {}),
        "metric_config": {
            **({"evaluation_description": told["metric"]} if "metric" in told else {}),
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": MOST.get(told.get("unit", ""), 1.0),
        },
        "score_details": {"score": told["value"], "details": carried(record, native), **uncertainty},
    }
    made = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{slug(name)}/{slug(model)}/{moment}",
        **({"evaluation_timestamp": told["date"]} if "date" in told else {}),
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": told.get("title", UNKNOWN),
            "source_type": "evaluation_run" if "method" in record.sources else "documentation",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
            "additional_details": own,
        },
        "eval_library": {"name": "prill" if "method" in record.sources else UNKNOWN,
                         "version": told.get("evaluator_version", UNKNOWN)},
        "model_info": {"name": model, "id": model},
        "evaluation_results": [result],
    }  # fmt: skip
    return Sent({"record.json": encoded(made)}, tuple(losses(record, native)))


def losses(record: ResultRecord, native: list[str]) -> Iterator[Loss]:
    """What has no place of its own."""
    yield from places(record)
    texts = [name for name in values(record) if name not in native]
    yield Loss(f"{len(texts)} fields", f"carried as texts that only prill reads: {', '.join(texts)}")
    if record.supersedes is not None:
        yield Loss("supersedes", "the earlier version and its digest")
    if "dispersion" in texts:
        yield Loss("dispersion", "its standard deviation is that of samples, not of seeds; carried as a text")
    yield Loss("source_organization_name", f"required there; a record has no such field, so it says {UNKNOWN!r}")


def slug(text: str) -> str:
    """A name as a part of an id."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in text) or UNKNOWN


def bring(data: bytes, name: str, day: str) -> tuple[ResultRecord, dict[str, bytes]]:
    """A record of such a file's first result, ours or anybody's. Raises `Unsound` or `DefinitionError`."""
    document = read_json(data)
    if wrong := next(faults(document), None):
        raise Unsound("SCHEMA", f"not of Every Eval Ever's schema {SCHEMA}: {wrong}")
    if len(document["evaluation_results"]) != 1:
        raise Unsound("SCHEMA", f"{len(document['evaluation_results'])} results; a record is one, so split the file")
    making = Making()
    making.json("import", "import.json", data, f"{name}, in the form of Every Eval Ever", day=day)
    said = {field: steps for field, steps in NATIVE.items() if known(document, steps)}
    fetched(making, "import", said, DETAILS, document["evaluation_results"][0]["score_details"].get("details"))
    own = document["source_metadata"].get("additional_details", {}).get("prill.id")
    return making.record(own if isinstance(own, str) else identity(document["evaluation_id"]), day), making.files


def known(document: Any, steps: tuple[str | int, ...]) -> bool:
    """Whether a place says something."""
    for step in steps:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return False
    return document is not None and document not in (UNKNOWN, "")


def faults(document: Any) -> Iterator[str]:
    """What the schema requires and a file does not keep."""
    if not isinstance(document, dict):
        yield "not an object"
        return
    for key in ("schema_version", "evaluation_id", "retrieved_timestamp"):
        if not isinstance(document.get(key), str):
            yield f"{key}: a text is required"
    yield from shape(document, "source_metadata", ("source_type", "source_organization_name", "evaluator_relationship"))
    yield from shape(document, "eval_library", ("name", "version"))
    yield from shape(document, "model_info", ("name", "id"))
    results = document.get("evaluation_results")
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        yield "evaluation_results: a list of objects is required"
        return
    for one in results:
        yield from of_result(one)


def shape(document: dict[str, Any], key: str, texts: tuple[str, ...]) -> Iterator[str]:
    """An object with texts, and details that are texts."""
    value = document.get(key)
    if not isinstance(value, dict):
        yield f"{key}: an object is required"
        return
    yield from (f"{key}.{name}: a text is required" for name in texts if not isinstance(value.get(name), str))
    details = value.get("additional_details", {})
    if not isinstance(details, dict) or not all(isinstance(text, str) for text in details.values()):
        yield f"{key}.additional_details: only texts"
    allowed = {"source_type": ("documentation", "evaluation_run"),
               "evaluator_relationship": ("first_party", "third_party", "collaborative", "other")}  # fmt: skip
    for name, words in allowed.items():
        if name in value and value[name] not in words:
            yield f"{key}.{name}: one of {', '.join(words)}"


def of_result(one: dict[str, Any]) -> Iterator[str]:
    """One result."""
    if not isinstance(one.get("evaluation_name"), str):
        yield "evaluation_name: a text is required"
    source, metric, score = (one.get(key) for key in ("source_data", "metric_config", "score_details"))
    if not (isinstance(source, dict) and isinstance(metric, dict) and isinstance(score, dict)):
        yield "source_data, metric_config and score_details: objects are required"
        return
    if source.get("source_type") not in ("url", "hf_dataset", "other") or not isinstance(
        source.get("dataset_name"), str
    ):
        yield "source_data: dataset_name, and source_type url, hf_dataset or other"
    if source.get("source_type") == "url" and not source.get("url"):
        yield "source_data.url: at least one"
    if not isinstance(metric.get("lower_is_better"), bool):
        yield "metric_config.lower_is_better: true or false is required"
    if metric.get("score_type") == "continuous" and not {"min_score", "max_score"} <= metric.keys():
        yield "metric_config: a continuous score has min_score and max_score"
    if isinstance(score.get("score"), bool) or not isinstance(score.get("score"), int | float):
        yield "score_details.score: a number is required"
    details = score.get("details", {})
    if not isinstance(details, dict) or not all(isinstance(text, str) for text in details.values()):
        yield "score_details.details: only texts"
