"""Our learners beside the streaming learners that a user would pick instead, on the same streams in one run."""
