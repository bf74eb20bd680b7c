"""The conformance suite of each socket: what a plug-in must do, as named checks that anyone can run over theirs.

    @pytest.mark.parametrize(("name", "check"), sandbox_conformance(plugin, isolated=True))
    def test_my_sandbox(name, check): check()

Each check says its truth in its docstring. One that cannot be made on this machine raises `unittest.SkipTest`.
"""

from prill.testing.agents import agent_conformance
from prill.testing.engines import engine_conformance
from prill.testing.sandboxes import sandbox_conformance

__all__ = ["agent_conformance", "engine_conformance", "sandbox_conformance"]
