"""Other libraries' streaming learners on streams that are scaled beforehand, for the benchmark and further streams."""
