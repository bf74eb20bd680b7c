"""A tiny world that tells the truth: word problems, a base model, its instruct sibling, and entrants."""
