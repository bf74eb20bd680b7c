"""How programs end: by code and clock first, by words only where they end the log."""

from typing import Any

import pytest

from prill import machine
from prill.classify import Facts, classify


def word(code: int | None, seconds: float = 600, log: str = "", **facts: Any) -> str:
    """The word for a program with a limit of ten hours."""
    return classify(
        Facts(
            exit_code=code, elapsed_seconds=seconds, limit_seconds=36000, log_tail=log, **{"has_model": False, **facts}
        )
    ).word


@pytest.mark.parametrize(
    ("code", "seconds", "facts", "expected"),
    [
        (0, 1500, {"has_model": True}, "ok"), (0, 1500, {}, "agent_gave_up"), (0, 10, {"stdout_bytes": 0}, "no_output"),
        (124, 36000, {}, "time_limit"), (124, 181, {}, "inner_timeout"), (137, 35998, {}, "time_limit"),
        (137, 5000, {}, "killed"), (137, 5000, {"memory_kills": 1}, "oom_killed"), (-9, 5000, {}, "killed"),
        (143, 5000, {}, "terminated"), (143, 36001, {}, "time_limit"), (0, 36001, {"has_model": True}, "time_limit"),
        (0, 1500, {"open_background_tasks": 1}, "early_end"), (1, 600, {}, "failed"),
        (1, 5, {"stdout_bytes": 0}, "no_output"), (None, 36000, {}, "time_limit"), (None, 5, {}, "killed"),
        (None, 5, {"scheduler_state": "PREEMPTED"}, "terminated"), (1, 4, {"preflight_failed": True}, "infra_cuda"),
        (None, 5, {"scheduler_state": "CANCELLED by 7"}, "terminated"),
        (None, 5, {"scheduler_state": "COMPLETED", "has_model": True}, "ok"),
    ],
)  # fmt: skip
def test_code_and_clock_come_first(code: int | None, seconds: float, facts: dict[str, Any], expected: str) -> None:
    """Exit code, measured time, evidence of a memory kill and the scheduler's state decide before any word."""
    assert word(code, seconds, **facts) == expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}', "api_overloaded"),
        ("Error code: 429 - {'message': 'exceeded your current quota', 'code': 'insufficient_quota'}", "api_quota"),
        ("Error 429: you exceeded your current quota", "api_rate_limit"),
        ("Please run /login", "api_auth"),
        ("OSError: [Errno 122] Disk quota exceeded", "infra_disk"),
        ("RuntimeError: No CUDA GPUs are available", "infra_cuda"),
        ("Maximum session turns exceeded", "agent_loop_abort"),
        ("RateLimitError: 429\nretrying in 5 s\nsaved a checkpoint\nValueError: x", "failed"),
        ("    raise RateLimitError('429')", "failed"),
        ("step 429 of 500", "failed"),
        ("# handles insufficient_quota", "failed"),
    ],
)
def test_an_error_counts_where_it_ends_the_log(log: str, expected: str) -> None:
    """Codes beat words, and what is quoted or was got over does not classify."""
    assert word(1, log=log) == expected


def test_words_do_not_undo_a_normal_end() -> None:
    """A program that ended by itself and left a model is fine whatever its log talks about."""
    assert word(0, log="RateLimitError: 429", has_model=True) == "ok"


def test_only_our_own_processes_are_killed() -> None:
    """A process of somebody else on the accelerator is told and left alone."""
    assert machine.leftovers([11, 12, 11], [11, 13]) == ((11,), (12,))


@pytest.mark.parametrize(
    ("env", "cache"),
    [
        ({"HF_HUB_CACHE": "/b", "HF_HOME": "/a"}, "/b"),
        ({"HUGGINGFACE_HUB_CACHE": "/c", "HF_HOME": "/a"}, "/c"),
        ({"HF_HUB_CACHE": "", "HF_HOME": "/a/"}, "/a/hub"),
        ({"HOME": "/h"}, "/h/.cache/huggingface/hub"),
    ],
)
def test_the_hub_cache_is_where_the_library_puts_it(env: dict[str, str], cache: str) -> None:
    """The most specific variable that is not empty wins."""
    assert machine.hub_cache(env) == cache


@pytest.mark.parametrize(
    ("hours", "seconds", "left"),
    [
        (0.5, 60, (1740, "0:29")),
        (10, 0, (36000, "10:00")),
        (0.1, 0.5, (359, "0:05")),
        (1, 4000, (0, "0:00 (the time has expired)")),
    ],
)
def test_a_budget_may_be_a_fraction_of_an_hour(hours: float, seconds: float, left: tuple[int, str]) -> None:
    """Time left is told in hours and minutes and is never negative."""
    assert machine.time_left(hours, seconds) == left
