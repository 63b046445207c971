"""The theorems on real runs: regret (20), the bounds (21) and (26), and the complexity paragraph."""
