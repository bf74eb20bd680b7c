"""Runs a model's code against tests so that neither the host nor the tests are within its reach.

The code runs in a fresh box of its own for each sample; what decides stands elsewhere: for HumanEval's assertions a
second box, for input and output this process. Between them pass bytes that spell literals (`literals.py`), nothing
else. `sample.py` is the door; `docs/reference/code.md` says what holds and what is not covered.

`answer.py` and `checker.py` run inside the boxes, where of all prill only this folder is mounted: they, and what they
import, need nothing but Python.
"""
