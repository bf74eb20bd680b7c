"""RunSpec → the words that the agent reads. Pure."""

from prill.outside import Wire
from prill.spec import RunSpec

SPOKEN: dict[Wire, str] = {
    "anthropic": "Anthropic Messages",
    "responses": "OpenAI Responses",
    "chat": "OpenAI Chat Completions",
    "gemini": "Gemini",
}


def render(spec: RunSpec) -> str:
    """The prompt: the template's blanks filled, the suite's rules numbered in its order."""
    rules = "\n".join(f"{number}. {spec.prompt.rules[rule].strip()}" for number, rule in enumerate(spec.rules, 1))
    filled = spec.prompt.template.format(
        model=spec.model.title,
        benchmarks=" and ".join(benchmark.title for benchmark in spec.benchmarks),
        time=hours_in_words(spec.budget.hours),
        money="" if spec.budget.usd is None else f" and {spec.budget.usd:g} US dollars",
        checks=checks(spec.budget.self_checks),
        wallet=wallet(spec),
        rules=rules,
    )
    return filled.strip() + "\n"


def wallet(spec: RunSpec) -> str:
    """What the wallet is for and what that costs, between empty lines; nothing where it is for the own model only."""
    budget, teacher = spec.budget, spec.teacher
    machine, disk = budget.gpu_usd_per_hour, budget.storage_usd_per_gb_hour
    if not (teacher or machine or disk or budget.beside):
        return ""
    lines = {
        "teacher": "none is for sale",
        "machine": f"${machine} an hour, whatever you do with it" if machine else "not charged",
        "storage": f"${disk} an hour for each GB that lies in your folder" if disk else "not charged",
        "your own model": "counted beside the wallet" if "model" in budget.beside else "from the wallet too",
    }
    if teacher:
        spoken = " or ".join(SPOKEN[wire] for wire in teacher.wires)
        lines["teacher"] = f"{spoken} at $PRILL_TEACHER_URL with $PRILL_TEACHER_KEY; {', '.join(spec.teacher_models)}"
    return "\nWhat the wallet is for:\n\n" + "".join(f"    {name:<21} {words}\n" for name, words in lines.items())


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
