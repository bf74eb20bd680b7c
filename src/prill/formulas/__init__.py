"""Two formulas in LaTeX or plain text: do they say the same? Pure, bounded, and never evaluated as code (rules M3-M7).

`latex.py` takes looks off and cuts into tokens, `grammar.py` reads trees, `values.py` says what they are worth,
`sameness.py` compares.
"""
