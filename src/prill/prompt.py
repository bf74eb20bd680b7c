"""RunSpec → the words that the agent reads. Pure."""

from prill.spec import RunSpec


def render(spec: RunSpec) -> str:
    """The prompt: the template's blanks filled, the suite's rules numbered in its order."""
    rules = "\n".join(f"{number}. {spec.prompt.rules[rule].strip()}" for number, rule in enumerate(spec.rules, 1))
    filled = spec.prompt.template.format(
        model=spec.model.title,
        benchmarks=" and ".join(benchmark.title for benchmark in spec.benchmarks),
        time=hours_in_words(spec.budget.hours),
        money="" if spec.budget.usd is None else f" and {spec.budget.usd:g} US dollars",
        checks=checks(spec.budget.self_checks),
        rules=rules,
    )
    return filled.strip() + "\n"


def checks(granted: int) -> str:
    """The line about the self-check; empty where the suite grants none."""
    if not granted:
        return ""
    many = "once" if granted == 1 else f"{granted} times"
    return f"    self-check            how $PRILL_SUBMISSION would be served and answer; {many}, then no more"


def hours_in_words(hours: float) -> str:
    """`10` → "10 hours", `0.05` → "3 minutes", `0.03` → "108 seconds"."""
    seconds = round(hours * 3600)
    for size, word in ((3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {word}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"
