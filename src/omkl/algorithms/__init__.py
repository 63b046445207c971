"""One round of each algorithm in plain NumPy: specification, teaching text and test oracle.

Every module has the same five names: `Problem` (what never changes), `State` (what a round
changes), `init`, `predict` (a question without side effects) and
`step(problem, state, x, y, r) -> (state, info)`, which is handed its uniforms `r`.
"""
