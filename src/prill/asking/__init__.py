"""Puts questions to an OpenAI-compatible server: N workers, one iterator, longest first; each reply kept as it comes.

Who owns what. The *model* owns a reply that ran into its token limit or its context window, or grew over the cap
(`length`), that is empty, that it refused, or that took longer than its time limit while the server was answering
(`timeout`): these are answers, they are kept, and they count. The *machine* owns everything else: no connection, a
stream that drops, a status that is not 200, HTML, JSON of another shape, text that is not UTF-8, a 429 that never
ends, a server that hangs for everybody. Those are asked again and, if that does not help, end in `InfraError`; no
answer comes of them.

`loop.py` asks, `reading.py` says whose a reply is, `kept.py` holds the answers on disk.
Memory is bounded by the number of workers times the cap. Not covered: streaming, so of a reply that takes too long
nothing is kept.
"""
