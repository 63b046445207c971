"""`omkl reproduce`: the paper's tables, figures and theorems, measured again and told as they came out."""
