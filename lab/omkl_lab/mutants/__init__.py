"""Mutation testing: small faults are planted in the library one by one, and the tests must notice them."""
