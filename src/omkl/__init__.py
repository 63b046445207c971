"""Online multi-kernel learning."""
