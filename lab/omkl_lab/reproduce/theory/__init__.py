"""The paper's theory on measured runs: regret (20), the bounds (21) and (26), and complexity."""
