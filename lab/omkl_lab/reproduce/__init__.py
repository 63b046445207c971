"""`omkl-lab reproduce`: reproduces the paper's tables and figures, and tests its claims and theorems."""
