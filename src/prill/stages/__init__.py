"""One file, one thing: solve, seal, measure, judge: what a run goes through, in that order."""
