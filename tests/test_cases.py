"""The acceptance cases of RULES.md, one test each, put to the public functions of prill.

A part that nobody knows fails.
"""

import base64
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from math import isclose
from pathlib import Path
from typing import Any

import msgspec
import pytest

from acceptance import Case, case_id, every
from prill import classify, conduct, contract, display, gates, machine, plugins, redact, seeds, slips, verdicts, wallet
from prill.answers import numbers, replies
from prill.answers.calls import BadGold, Call, mismatch
from prill.answers.sameness import equivalent
from prill.asking import reading
from prill.calibration.scene import Scene
from prill.graders import choice, function_call, math, number, python_tests
from prill.trajectory import parse as parse_trajectory

Value = dict[str, Any]
SECONDS = 10
"""For code that a case extracts."""


# --- replies ------------------------------------------------------------------------------------------------------


def truncated(asked: Value) -> bool:
    """Whether N6 voids the reply of a case."""
    return replies.cut_off(asked.get("finish_reason"), asked.get("truncated_scores_zero", False))


def aime(asked: Value) -> Value:
    """AIME: the whole number, and whether it is right."""
    value = number.read_integer(asked["completion"], truncated=truncated(asked))
    return {"answer": value, "correct": value is not None and value == number.read_target(asked["target"])}


def gsm8k(asked: Value) -> Value:
    """GSM8K: the number as a decimal, and whether it is right."""
    value = number.read_number(asked["completion"], truncated=truncated(asked))
    text = None if value is None else numbers.decimal(value)
    return {"value": text, "correct": value is not None and value == number.read_target(asked["target"])}


def letters(asked: Value) -> Value:
    """Multiple choice: the letter, or the letters in order."""
    found = choice.read_letters(
        asked["completion"],
        asked["choices"],
        mode=asked.get("mode", "lenient"),
        multiple=asked.get("multiple", False),
        stop=asked.get("finish_reason"),
        truncated_scores_zero=asked.get("truncated_scores_zero", False),
    )
    return {"letter": found[0] if found else None, "letters": list(found) if found else None}


def formula(asked: Value) -> Value:
    """MATH: what is in the box, and whether it says the same as the target."""
    found = math.read_formula(asked["completion"], asked["target"], truncated=truncated(asked))
    return {"extracted": found, "equivalent": found is not None and equivalent(found, replies.fold(asked["target"]))}


def ran(code: str, checks: list[list[str]], stdin: str) -> tuple[bool, str]:
    """Whether extracted code passes its checks, and what it prints, in a process of its own."""
    program = code + "".join(f"\nassert ({asked}) == ({wanted})" for asked, wanted in checks)
    command = [sys.executable, "-I", "-c", program]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=SECONDS, cwd="/")
    return done.returncode == 0, done.stdout.strip()


def code(asked: Value, expected: Value) -> Value:
    """Code: whether there is any, what it holds, whether it passes; expectations say what to try."""
    if "tests" in asked:
        try:
            python_tests.need_tests(asked["tests"])
        except ValueError:
            return {"verdict": "grading_error"}
    found = python_tests.extract_code(
        asked["completion"],
        entry_point=asked.get("entry_point", ""),
        mode=asked["mode"],
        prompt=asked.get("prompt", ""),
        truncated=truncated(asked),
    )
    if found.code is None:
        return {"code": None, "reason": found.reason}
    passes, printed = ran(found.code, expected.get("checks", []), asked.get("stdin", expected.get("stdin", "")))
    return {
        "code": "required",
        "passes": passes,
        "stdout": printed,
        "contains": [part for part in expected.get("contains", []) if part in found.code],
        "not_contains": [part for part in expected.get("not_contains", []) if part not in found.code],
        "defines": [name for name in expected.get("defines", []) if name in found.code],
        **{key: expected[key] for key in ("checks", "stdin") if key in expected},
    }


def parsed(asked: Value) -> Value:
    """BFCL: the calls that an output writes down."""
    found = function_call.parse_calls(asked["output"], asked["format"])
    return {"calls": None if found is None else [{"name": c.name, "arguments": c.arguments} for c in found]}


def matched(asked: Value) -> Value:
    """BFCL: whether calls are the right one."""
    try:
        return {
            "valid": not mismatch([Call(**each) for each in asked["calls"]], Call(**asked["gold"]), asked["schema"])
        }
    except BadGold:
        return {"valid": "data_error"}


def shuffled(asked: Value) -> Value:
    """Options in a new order."""
    now = seeds.shuffled(asked["choices"], asked["target_index"], asked["perms"])
    return {"shown": list(now.options), "letter": now.letter, "original_positions": list(now.original)}


def family(asked: Value) -> Value:
    """The family of a template; the path decides nothing."""
    found = contract.family(asked["config"])
    return {"family": found, "error": None if found else "UNKNOWN_ARCHITECTURE"}


# --- runs, judges, money, pages -----------------------------------------------------------------------------------


def ending(asked: Value) -> Value:
    """How a run ended."""
    facts = classify.Facts(
        exit_code=asked["exit_code"],
        elapsed_seconds=asked["elapsed_s"],
        limit_seconds=asked["limit_s"],
        log_tail=asked["log_tail"],
        has_model=asked["has_final_model"],
        stdout_bytes=asked.get("stdout_bytes"),
        open_background_tasks=asked.get("open_background_tasks", 0),
        memory_kills=asked.get("oom_kill_count", 0),
        preflight_failed=asked.get("preflight_failed", False),
        scheduler_state=asked.get("scheduler_state"),
    )
    return {"class": classify.classify(facts).word}


def timer(asked: Value) -> Value:
    """Time left; its words."""
    left = machine.time_left(asked["hours"], asked["elapsed_s"])
    return {"remaining_s": left.seconds, "text": left.text}


def judged(asked: Value) -> Value:
    """A judge's JSON."""
    values = verdicts.parse_json(asked["reply"], asked["schema"])
    return {"status": "invalid" if values is None else "ok", "values": values}


def combined(asked: Value) -> Value:
    """Several judges."""
    found = verdicts.combine(asked["judges"], asked["combine"], manual=asked.get("manual"))
    return {"status": found.status, "source": found.source, **found.values}


def ruled(asked: Value) -> Value:
    """What a judge makes of one command; whether a run is judged at all."""
    if asked["rule"] == "should_judge":
        return {"judge": conduct.worth_judging(asked["trace_events"])}
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), random.Random(0), benchmark=asked["benchmark"], way="imported")
        if asked.get("executed", True):
            scene.bash(asked["command"])
        else:
            scene.say(asked["command"])
        judge = plugins.get("judges", {"api": "hosted_api", "lookup": "lookup"}[asked["rule"]])
        (found,) = judge(scene.evidence())
    return {
        "hosted_api": found.verdict == "broken",
        "lookup": {"unknown": "suspect", "kept": "clean"}.get(found.verdict),
    }


def paid(asked: Value) -> Value:
    """What usage costs, or whether the gate opens."""
    if asked.get("op") == "gate":
        return {"allow": wallet.allows(asked["limit"], asked["spent"], asked["reserve"])}
    if "cumulative" in asked:
        usages: list[Mapping[str, Any] | None] = list(
            wallet.sessions([each.get("usage", each) for each in asked["cumulative"]])
        )
    elif "events" in asked:
        usages = wallet.last_per_message((each.get("id"), each.get("usage")) for each in asked["events"])
    elif "chunks" in asked:
        usages = [wallet.last_chunk(each.get("usage") for each in asked["chunks"])]
    else:
        usages = [asked.get("usage")]
    found = wallet.added(wallet.cost(usage, asked["price"], asked["style"]) for usage in usages)
    return {"cost_usd": None if found.usd is None else float(found.usd), "alert": found.alert}


def hidden(asked: Value) -> Value:
    """A text without its secrets."""
    text = redact.redact(asked["text"], asked["env"])
    return {"text": text, "unchanged": text == asked["text"]}


def said(asked: Value) -> Value:
    """What an agent's raw output says."""
    if "raw_b64" in asked:
        raw = base64.b64decode(asked["raw_b64"])
    elif "raw_template" in asked:
        parts = asked["raw_template"]
        text = "".join(part if isinstance(part, str) else part["repeat"] * part["times"] for part in parts)
        raw = text.encode("utf-8", "surrogatepass")
    else:
        raw = asked["raw"].encode("utf-8", "surrogatepass")
    return msgspec.to_builtins(parse_trajectory(asked["agent"], raw))


def page(asked: Value) -> Value:
    """Text, or a value, as a page may hold it."""
    if "json_in_script" not in asked:
        return {"text": display.escaped(asked["text"])}
    text = display.in_script(asked["json_in_script"])
    return {"text": text, "json_round_trips": json.loads(text) == asked["json_in_script"]}


def gate(asked: Value) -> Value:
    """One gate of a self-check, by its name."""
    return {
        "startup": started,
        "healthy_after": started,
        "graded_request": graded,
        "concurrent": together,
        "budget": rationed,
        "staleness": lambda asked: {
            "warning": gates.stale(asked.get("last_pass_files_sha256"), asked["submitted_files_sha256"])
        },
    }[asked["gate"]](asked)


def started(asked: Value) -> Value:
    """Whether a server came up, or still is."""
    limit, health = asked.get("limit_s"), asked.get("health", [])
    if asked["gate"] == "healthy_after":
        found = gates.healthy_after(None, limit or 60, health=health, generation=asked.get("probe_generation", "ok"))
    else:
        ended = any(asked.get(name) not in (None, False) for name in ("exit_code", "exited", "exited_after_s"))
        generation = asked.get("first_generation", "ok")
        found = gates.startup(asked.get("ready_after_s"), limit, exited=ended, health=health, generation=generation)
    return {"pass": found.state in ("green", "amber"), "status": gates.status(found.state), "margin_s": found.margin}


def graded(asked: Value) -> Value:
    """What one reply is worth, read as the server sent it."""
    try:
        reply = reading.read("", json.dumps(asked["reply"]).encode())
    except reading.Lapse:
        return {"well_formed": False, "scores_zero": True, "warning": "MALFORMED"}
    letter = choice.read_letters(reply.text, asked.get("choices", "ABCD"), mode="strict")
    told = gates.Asked(item="", stop=reply.stop, empty=slips.empty(reply.text), found=letter is not None)
    word = gates.warning(told)
    return {"well_formed": True, "scores_zero": word is not None, "warning": word}


def together(asked: Value) -> Value:
    """Many requests at a time."""
    reasons = asked["finish_reasons"]
    seconds = asked.get("durations_s") or [None] * len(reasons)
    texts = asked.get("contents") or ["?"] * len(reasons)
    requests = [
        gates.Asked(item="", stop=reading.STOPS.get(reason, "timeout"), seconds=second, empty=slips.empty(text or ""))
        for reason, second, text in zip(reasons, seconds, texts, strict=True)
    ]
    found = gates.concurrent(requests, asked["limit_s"], asked.get("slowest_s"))
    return {**found.numbers, "status": gates.status(found.state)}


def rationed(asked: Value) -> Value:
    """Whether another check may be asked for."""
    left = gates.left(asked["used"], asked["limit"])
    return {"left": left, "allowed": left > 0}


PARTS: dict[str, Callable[[Value], Value]] = {
    "evaluator/answer.aime": aime,
    "evaluator/answer.choice": letters,
    "evaluator/answer.gsm8k": gsm8k,
    "evaluator/answer.math": formula,
    "evaluator/bfcl.match": matched,
    "evaluator/bfcl.parse": parsed,
    "evaluator/choice.shuffle": shuffled,
    "evaluator/template.family": family,
    "judge/combine": combined,
    "judge/parse.json": judged,
    "judge/rules": ruled,
    "judge/parse.text": lambda asked: {"verdict": verdicts.parse_text(**asked)},
    "publish/html": page,
    "publish/redact": hidden,
    "runner/classify": ending,
    "runner/hubcache": lambda asked: {"effective": machine.hub_cache(asked["env"])},
    "runner/reap": lambda asked: {"kill": list(machine.leftovers(asked["gpu_pids"], asked["own_pids"]).kill)},
    "runner/timer": timer,
    "selfcheck/gates": gate,
    "trajectory/parse": said,
    "trajectory/display": lambda asked: {"shown": display.shown(asked["text"])},
    "wallet": paid,
}
"""Part → what prill makes of a case's input."""
ELSEWHERE = {
    "aggregate": "tests/test_aggregate.py",
    "checkpoint/audit": "tests/test_checkpoint.py",
    "checkpoint/safetensors": "tests/test_checkpoint.py",
    "evaluator/sandbox": "tests/test_coderun.py",
}
"""Part → the file that puts its cases to prill."""
HERE = [case for case in every() if case["part"] not in ELSEWHERE]

# --- comparing ----------------------------------------------------------------------------------------------------


def meets(key: str, wanted: Any, got: Value) -> bool:
    """Whether one key of what is expected is met."""
    if key in ("must_contain", "text_must_contain"):
        return all(part in got["text"] for part in ([wanted] if isinstance(wanted, str) else wanted))
    if key == "must_not_contain":
        return not any(part in got["text"] for part in wanted)
    if key == "usage" and wanted is not None:
        return got[key] is not None and all(same(number, got[key].get(kind)) for kind, number in wanted.items())
    if key == "final_text_matches":
        return re.search(wanted, got["final_text"] or "") is not None
    if key == "longest_line_at_least":
        return bool(got["longest_line"] >= wanted)
    if key == "output_is_valid_utf8":
        return bool(json.dumps(got, ensure_ascii=False).encode("utf-8")) is wanted
    if key == "letters" and wanted is not None:
        return sorted(wanted) == sorted(got[key] or [])
    return same(wanted, got.get(key))


def same(wanted: Any, got: Any) -> bool:
    """Equality, with numbers at a relative tolerance of one in a million."""
    if isinstance(wanted, bool) or isinstance(got, bool) or wanted is None:
        return wanted is got
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        return isclose(wanted, got, rel_tol=1e-6)
    if isinstance(wanted, dict) and isinstance(got, Mapping):
        return wanted.keys() == got.keys() and all(same(wanted[key], got[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(same, wanted, got))
    return bool(wanted == got)


def test_other_parts_are_put_to_prill_elsewhere(repo: Path) -> None:
    """The file that is said to put a part to prill takes that part's cases."""
    for part, file in ELSEWHERE.items():
        assert f'"{part}"' in (repo / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("case", HERE, ids=case_id)
def test_each_case_is_met(case: Case) -> None:
    """Every key that an acceptance case expects is met."""
    part, asked, expected = case["part"], case["input"], case["expected"]
    if part == "evaluator/answer.code":
        expected = {"passes": True, **expected} if expected.get("code") == "required" else expected
        got = code(asked, expected)
    else:
        got = PARTS[part](asked)
    missed = [key for key, wanted in expected.items() if not meets(key, wanted, got)]
    assert not missed, f"{case['rule']}: {case['why']}\n{asked}\nmissed {missed}\ngot {got}"
