"""The agent's hours: the box and what it sees, the doors out of it, the clock, the keeper that outlives the runner.

`keep` is the keeper, a process of its own for each run; `place` says what the box shows, `doors` opens the gateway and
its like, `clock` knows what is used up, `watch` samples the machine, `preflight` looks before anything is spent,
`writeup` makes an outcome and a trajectory of what is left on disk, `attach` starts a keeper or finds one at work.
"""
