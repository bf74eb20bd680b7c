"""prill assays automated post-training: from an agent to a number that can be walked back to bytes.

Nothing is imported here, so that `import prill` costs nothing; see `docs/tour.md` for the way through.
"""

__version__ = "0.1.0"
