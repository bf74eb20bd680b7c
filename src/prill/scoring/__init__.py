"""What a score is made of, in pure parts: `selection` of runs, `tally` of weights and means, `why` of a cell,
`bootstrap` over items, `overview` of time and money, `changes` between two boards, `explain` down to files.

`prill.score` puts cells and standings together; `prill.scrutiny` says what a headline hangs on.
"""
