"""Commands that are not about one run: a family of them a file, with `add(commands)` for its options."""
