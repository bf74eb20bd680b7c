"""What a reply says: the answer in it, read by rule. Pure, bounded, and nothing is ever evaluated as code.

`replies` prepares text and finds final-answer markers, `numbers` reads numbers exactly, `fences` finds code blocks,
`calls` compares function calls; for formulas `latex` takes looks off and cuts into tokens, `grammar` reads trees,
`values` says what they are worth and `sameness` compares two.
"""
