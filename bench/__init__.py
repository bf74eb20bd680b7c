"""Performance: each row is one thing that must not get slow, measured beside a peer or a limit. See `__main__.py`."""
