"""Checkpoints read as files: may a submission be loaded at all (`audit`), and what does it descend from (`lineage`)."""
