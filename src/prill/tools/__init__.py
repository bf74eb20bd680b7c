"""Programs that are placed in the agent's box, read-only. They use the standard library and the box's own packages,
and nothing of prill, which the agent never sees.
"""
