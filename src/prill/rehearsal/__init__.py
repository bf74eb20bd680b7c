"""The scripted provider: a real HTTP server that plays a scenario to real clients, in four wire formats.

`python -m prill.rehearsal SCENARIO --port N` (or `--socket PATH`). What it was asked and what it charged for it, it
writes into a file of its own (`--truth FILE`), so that a ledger can be held against it to the last digit.

Not covered: thinking blocks, images, audio, server tools, batches, uploaded files, conversations that are kept on the
server (`previous_response_id`), and the many checks with which a real provider refuses a request.
"""
