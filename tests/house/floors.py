"""The floors: which module of the package stands where. The one table to edit when a module is added.

A module imports only from floors that sort below its own; letters order the rooms of one floor, and rooms on the
same letter do not import each other.

    0a-0d  words: values and protocols
    1a-1c  thinking: pure; small readers of text (1a), what is computed from them (1b), pages (1c)
    1d-1f  hands: they touch the disk; above all of thinking, so no pure module can reach them
    2a     deep modules: folders (or files) that do one large thing behind a small face
    2b     shelves: one file, one plug-in; imported by nobody, found by name
    2c     a benchmark put to an endpoint, a question to a judge model
    2d     what runs of ours inside a box, or inside another program
    2e     benchmarks put to a model folder; above them the self-check
    3      stages
    4      whole runs, and what the command line shows of them
    4b     what is measured by hand
    5      families of commands
    5b     the command line
    6      programs that nobody imports

`tools/` and `smoke/entrants/` stand outside: they are programs for the agent's box, where prill is not installed.
"""

from house.source import words

ROOMS = {
    "0a": "__init__ errors outside",
    "0b": "spec panels",
    "0c": "record questions decisions",
    "0d": "sockets standings evidence reported",
    "1": "signatures bill",
    "1a": "plan budget prompt compare answers rows headless seeds classify verdicts wallet redact display opinions "
    "style machine scoring conduct",
    "1b": "score story chat contract slips",
    "1c": "pages scrutiny gates",
    "1d": "plugins outputs runtime hidden_tests copying submitted",
    "1da": "processes",
    "1e": "folder items",
    "1f": "catalog npm error_rates",
    "2a": "gateway overlap published checkpoint trajectory audit asking serving coderun",
    "2aa": "dossier",
    "2ab": "panel",
    "2b": "agents sandboxes schedulers engines graders judges importers",
    "2c": "exam judge_model solving discreet records",
    "2ca": "seating",
    "2d": "inside inspect_tasks hosting tunnel",
    "2e": "sitting",
    "2ea": "selfcheck",
    "3": "stages",
    "4": "run publish testing check progress tables arguments",
    "4b": "by_hand calibration",
    "5": "commands",
    "5b": "cli",
    "6": "__main__ smoke canned rehearsal",
}
FLOORS = {name: floor for floor, names in ROOMS.items() for name in names.split()}
PURE = frozenset(name for name, floor in FLOORS.items() if floor < "1d")
SHELVES = frozenset(ROOMS["2b"].split())
DEEP = frozenset(ROOMS["2a"].split())
ONE_THING = DEEP | {
    "answers",
    "calibration",
    "conduct",
    "panel",
    "records",
    "redact",
    "rehearsal",
    "scoring",
    "smoke",
    "solving",
    "testing",
}
"""Folders that are one thing: their files may import each other."""
OUTSIDE = ("prill.tools", "prill.smoke.entrants")
"""Programs for the agent's box."""
BOX_OFFERS = words("torch transformers tokenizers safetensors accelerate numpy datasets trl")
"""Packages that a tool may use inside a function, because the agent's box has them."""


def top(module: str) -> str:
    """The name in the table that a dotted module belongs to: `prill.stages.solve` gives `stages`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def outside(module: str) -> bool:
    """Whether a module is a program for the agent's box."""
    return any(module == name or module.startswith(name + ".") for name in OUTSIDE)
