"""Judge `panel`: models are asked about the run, as the suite's panel says; the rules are those of its questions.

It speaks for models and not for evidence: what evidence shows to be broken it cannot overrule, and what it calls kept
settles only a suspicion. Not covered: what a model does not understand, and what the quotation leaves out.
"""

from prill.dossier import Dossier
from prill.panel.hearing import hear
from prill.panels import Panel
from prill.record import Finding
from prill.sockets import Ask, Evidence


class PanelJudge:
    """See `AskingJudge`."""

    rules: tuple[str, ...] = ()
    """Those of the panel that it is given."""
    asks = True

    def __call__(self, evidence: Evidence, panel: Panel, ask: Ask) -> list[Finding]:
        """One finding for each rule of the panel."""
        return hear(Dossier(evidence), panel, ask)


plugin = PanelJudge()
