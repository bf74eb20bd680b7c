"""How an agent's program ended, in one word and one sentence: rules I1 to I6 of RULES.md.

By exit code and measured time first; words in a log only where they end it, and codes before words (I4, I5). A label
that somebody gave the run, or a number of seconds in a message, decides nothing (I1).
"""

import re
from dataclasses import dataclass
from typing import Literal

Word = Literal[
    "ok", "time_limit", "inner_timeout", "killed", "oom_killed", "terminated", "early_end", "agent_gave_up",
    "agent_loop_abort", "no_output", "failed", "api_overloaded", "api_rate_limit", "api_quota", "api_auth",
    "infra_disk", "infra_stale_handle", "infra_gpu_busy", "infra_cuda", "infra_node",
    "wallet_empty", "disk_limit", "stopped",
]  # fmt: skip
"""`failed`: the program says that it failed, and nothing more is known. The last three only a runner can know."""


IN_WORDS = {
    "finished": "the agent finished by itself",
    "failed": "the agent's program failed",
    "time_limit": "the time was up and the agent was stopped",
    "killed": "the agent's program was killed",
    "oom_killed": "the agent ran out of memory and was killed",
    "no_output": "the agent's program printed nothing",
    "wallet_empty": "the wallet was empty",
    "disk_limit": "the agent's files filled the disk",
    "inner_timeout": "a time limit of the agent's own ended it",
    "terminated": "a signal ended the agent's program",
    "early_end": "the agent ended before its work was done",
    "agent_gave_up": "the agent ended by itself and left no model",
    "agent_loop_abort": "the agent's program stopped it for going in circles",
    "stopped": "whoever runs it stopped it",
    "api_overloaded": "the model's provider was overloaded",
    "api_rate_limit": "the model's provider limited the rate",
    "api_quota": "the account's quota at the model's provider was used up",
    "api_auth": "the model's provider refused the key",
    "infra_disk": "the machine's disk was full",
    "infra_stale_handle": "the machine lost a file system",
    "infra_gpu_busy": "the machine's GPU was busy",
    "infra_cuda": "the machine's GPU did not work",
    "infra_node": "the machine failed",
}
"""Each class of an outcome, as a person reads it."""


@dataclass(frozen=True)
class Ending:
    """One word, and what it rests on."""

    word: Word
    why: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What was measured about a program that ended."""

    exit_code: int | None
    """`None` where nobody wrote it down."""
    elapsed_seconds: float
    limit_seconds: float
    log_tail: str = ""
    has_model: bool
    stdout_bytes: int | None = None
    open_background_tasks: int = 0
    memory_kills: int = 0
    """Processes that the kernel or the cgroup says it killed for memory."""
    preflight_failed: bool = False
    scheduler_state: str | None = None


# --- terminal errors (I4) -----------------------------------------------------------------------------------------

_BAD = r"(?:error|status|http|code|exception|failed)\W"
_WORDS: tuple[tuple[Word, tuple[str, ...]], ...] = (
    ("infra_disk", (r"errno (?:28|122)\b", "enospc", "edquot", "no space left on device", "disk quota exceeded")),
    ("infra_stale_handle", (r"errno 116\b", "estale", "stale (?:nfs )?file handle")),
    ("infra_gpu_busy", ("less than desired gpu memory utilization", "cuda-capable devices are busy or unavailable")),
    (
        "infra_cuda",
        (
            *("cuda is not available", "no cuda-capable device", "no cuda gpus are available", "cuda unknown error"),
            *("cuda driver initialization failed", "cuda driver version is insufficient", "found no nvidia driver"),
            *("driver/library version mismatch", "couldn't communicate with the nvidia driver"),
            *("uncorrectable ecc", "fallen off the bus"),
        ),
    ),
    ("infra_node", ("due to node failure", r"\bnode_fail\b")),
    ("api_quota", ("insufficient_quota", "billing_hard_limit_reached", "billing_error", "payment required")),
    ("api_rate_limit", ("rate_limit_e(?:rror|xceeded)", "ratelimiterror", "resource_exhausted", "too many requests")),
    ("api_rate_limit", (rf"{_BAD}.*\b429\b", r"\b429\b.*(?:error|status|requests)")),
    ("api_overloaded", ("overloaded_?error", "service unavailable", r"\boverloaded\b", rf"{_BAD}.*\b5(?:29|03)\b")),
    ("api_auth", ("authentication_?error", "invalid_api_key", "(?:invalid|incorrect) api key", "permission_?denied")),
    ("api_auth", (r"\b401\b.*unauthori[sz]ed", r"unauthori[sz]ed.*\b401\b", rf"{_BAD}.*\b40[13]\b")),
    ("api_auth", ("not logged in", "please run /login", "token (?:has )?(?:expired|been revoked)", "permission_error")),
    ("api_quota", ("you['\u2019]?ve hit your (?:usage )?limit", "usage limit reached", "credit balance is too low")),
    ("api_quota", (r"(?:exceeded|out of|no)\b.{0,30}\b(?:quota|credits)\b", "quota (?:is )?ex(?:ceeded|hausted)")),
    ("agent_loop_abort", ("loop (?:was )?detected", "potential loop", "stuck in a loop")),
    ("agent_loop_abort", (r"max(?:imum)?\b.{0,20}turns (?:reached|exceeded)", "reached max(?:imum)? turns")),
    ("inner_timeout", ("timed? ?out after", "timeoutexpired", r"\btimed out\b", "deadline exceeded")),
)
_ERRORS = tuple((word, re.compile("|".join(forms), re.IGNORECASE)) for word, forms in _WORDS)
"""In order: codes and types of errors before words, for a message may deny what it mentions."""
_QUOTED = re.compile(
    r"\s|[#>|`+\"']|- |\{\s*\"type\":\s*\"(?:assistant|user|item|message)|(?:def|class|print|echo|grep|rg|cat)\b"
)
"""How a line begins that somebody wrote about errors, as against a program that reports one."""
_RECOVERED = re.compile(
    r"\b(?:retrying|retried|recover\w*|resum\w+|continu\w+|go(?:ing)? on|sav(?:ed|ing)|succe\w+|done|completed)\b",
    re.IGNORECASE,
)
_GAVE_UP = re.compile(r"retries|giving up|gave up|exhausted|aborting|not (?:saved|done|finished)", re.IGNORECASE)
_LAST = 4
"""Lines at the end of a log in which an error ends it."""


def terminal_error(log_tail: str) -> Ending | None:
    """The error with which a log ends; `None` where it is quoted, or something went on afterwards (I5)."""
    lines = [line for line in log_tail[-20_000:].splitlines() if line.strip()]
    for line in reversed(lines[-_LAST:]):
        if _RECOVERED.search(line) and not _GAVE_UP.search(line):
            return None
        if _QUOTED.match(line):
            continue
        for word, pattern in _ERRORS:
            if pattern.search(line[:2000]):
                return Ending(word, f"the log ends with: {line.strip()[:200]}")
    return None


# --- the rest -----------------------------------------------------------------------------------------------------

_STATES: dict[str, tuple[Word, str]] = {
    "TIMEOUT": ("time_limit", "the scheduler ended it at its time limit"),
    "DEADLINE": ("time_limit", "the scheduler ended it at its deadline"),
    "OUT_OF_MEMORY": ("oom_killed", "the scheduler says that it ran out of memory"),
    "NODE_FAIL": ("infra_node", "the node failed"),
    "BOOT_FAIL": ("infra_node", "the node did not boot"),
    "PREEMPTED": ("terminated", "the scheduler took the node away"),
    "CANCELLED": ("terminated", "the job was cancelled"),
    "REVOKED": ("terminated", "the job was revoked"),
}
_CEILING = re.compile(
    r"background task stopped|wait ceiling|background (?:tasks?|work|processes) (?:was |were )?killed", re.I
)
_GRACE_SECONDS = 5.0
_KILL, _TERM, _INT, _HUP = 137, 143, 130, 129
_TIMEOUT = 124


def _without_code(facts: Facts) -> Ending:
    state = (facts.scheduler_state or "").split()[0].rstrip("+").upper() if facts.scheduler_state else ""
    if state in _STATES:
        return Ending(*_STATES[state])
    if state == "COMPLETED":
        return _finished(facts)
    if facts.elapsed_seconds >= facts.limit_seconds - _GRACE_SECONDS:
        return Ending("time_limit", "no exit code was written; the time was over")
    error = terminal_error(facts.log_tail)
    if state == "FAILED":
        return error or Ending("failed", "the scheduler says that it failed")
    return error or Ending("killed", "no exit code was written and no state says why")


def _killed(code: int, facts: Facts) -> Ending:
    """By a signal before the limit (I1): a memory kill needs evidence."""
    evidence = facts.memory_kills > 0 or (facts.scheduler_state or "").upper().startswith("OUT_OF_MEMORY")
    if code == _KILL and evidence:
        return Ending("oom_killed", "killed, and a memory kill is on record")
    if code == _KILL:
        return Ending("killed", "SIGKILL before the limit, with no memory kill on record")
    return Ending("terminated", f"ended by a signal before the limit (exit code {code})")


def _finished(facts: Facts) -> Ending:
    """Exit code 0, before the limit (I2, I3)."""
    if facts.stdout_bytes == 0:
        return Ending("no_output", "it printed nothing")
    if facts.open_background_tasks:
        return Ending("early_end", f"{facts.open_background_tasks} background tasks were still open")
    lines = [line for line in facts.log_tail.splitlines() if line.strip()]
    if lines and _CEILING.search(lines[-1]) and not _QUOTED.match(lines[-1]):
        return Ending("early_end", f"the log ends with: {lines[-1].strip()[:200]}")
    if facts.has_model:
        return Ending("ok", "it ended by itself and left a model")
    return terminal_error("\n".join(lines[-1:])) or Ending("agent_gave_up", "it ended by itself and left no model")


def classify(facts: Facts) -> Ending:
    """How a program ended (I1 to I6)."""
    code = facts.exit_code
    if facts.preflight_failed:
        error = terminal_error(facts.log_tail)
        found = error and error.word.startswith("infra_")
        return error if error and found else Ending("infra_cuda", "the check before the start failed")
    if code is None:
        return _without_code(facts)
    code = 128 - code if code < 0 else code
    signalled = code in (_TIMEOUT, _KILL, _TERM, _INT, _HUP)
    if facts.elapsed_seconds >= facts.limit_seconds - (_GRACE_SECONDS if signalled else 0):
        return Ending("time_limit", f"{facts.elapsed_seconds:g} s of {facts.limit_seconds:g} s (exit code {code})")
    if code == _TIMEOUT:
        return Ending("inner_timeout", f"a time limit ended it after {facts.elapsed_seconds:g} s; ours was not reached")
    if signalled:
        return _killed(code, facts)
    if code == 0:
        return _finished(facts)
    error = terminal_error(facts.log_tail)
    if error:
        return error
    if facts.stdout_bytes == 0:
        return Ending("no_output", f"it printed nothing (exit code {code})")
    return Ending("failed", f"exit code {code}, and the log does not end with an error that we know")
