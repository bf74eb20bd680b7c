"""What was looked at when, for the zoo's page: held-out seeds, and what they showed of the rule as it was then."""

HELD_OUT = (101, 102, 103)
HISTORY = """
## What was looked at when

- Seed 0: the thresholds marked so in [lineage](lineage.md) were chosen with it. It is not held out.
- Seed 101: trained while the rule was being changed, looked at once, after it was frozen. One verdict was wrong:
  another seed's model was said to contain the sibling (0.24 in 15 matrices), where it should not be shown to descend;
  both break the rule. Partial alpha of a matrix that is far from the base is chance, so such matrices are no longer
  counted. That correction is by kind, and seed 101 does not vouch for it. Two runs were not trained for that look: on
  the sibling's answers, and from the sibling with rewards.
- Seeds 102 and 103: nobody has looked at them yet.

Not in the zoo: what an honest run learnt from the sibling's answers shows in no weights (the row says so); models of a
billion parameters, which move far less; two siblings at once.
"""
