"""Judge `era`: does what the run took from the hub bear a date after its suite's time? Rule `era`.

No suite that prill ships has such a rule, for no published one dates what may be used. For one that has it, its time is
the date of its list of prices. A date in a name proves nothing, so the answer is a suspicion at most.
Not covered: what bears no date in its name, and what came from elsewhere than the hub.
"""

import re

from prill.dossier import Dossier, note, said
from prill.record import Citation, Finding
from prill.sockets import Evidence

DATE = re.compile(r"(?<!\d)(20[2-9]\d)(?:[-_.]?(0[1-9]|1[0-2])(?:[-_.]?([0-2]\d|3[01]))?)?(?!\d)")
HUB = "huggingface.co"


class Era:
    """Dates in names."""

    rules = ("era",)

    def __call__(self, evidence: Evidence) -> list[Finding]:
        """One finding on `era`."""
        read = Dossier(evidence)
        until = read.spec.prices.dated if read.spec.prices else ""
        taken = [(line.word("repo"), line.cite(line.word("repo"))) for line in read.hub or () if line.word("repo")]
        taken += [
            (deed.what, read.cite(deed))
            for deed in read.deeds
            if deed.verb == "reached" and read.place(deed.what).host.endswith(HUB)
        ]
        suspect: dict[str, list[Citation]] = {}
        for name, cite in taken:
            dates = ["-".join(part for part in match.groups() if part) for match in DATE.finditer(name)]
            if until and (late := [date for date in dates if date > until[: len(date)]]):
                note(suspect, f"{name[:200]} bears the date {late[0]}, after {until}", cite)
        unknown = read.unseen() if until else "the suite has no date"
        return [said("era", {}, suspect, f"nothing of {len(taken)} things bears a date after {until}", unknown)]


plugin = Era()
