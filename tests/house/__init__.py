"""The house rules that a machine can check, each as a function from a source tree to the list of what breaks it.

Every rule is tested three times: on this tree (nothing), on a tree with a planted violation (found), and on a tree
with an innocent look-alike (nothing). Rules that no machine here checks, and that a reader must: names are never
parsed (rule 3), no facts in Python and no logic in TOML (rule 4), every failure has an owner (rule 8), comments say
why and no history is told (rule 13), a new socket has two residents (rule 17), plain words (rule 18).
"""
