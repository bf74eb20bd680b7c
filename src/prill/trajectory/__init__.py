"""What an agent printed: raw output → steps, their numbers for ever, ATIF, session files, money, search."""

from prill.trajectory.reading import Parsed, parse, steps

__all__ = ["Parsed", "parse", "steps"]
