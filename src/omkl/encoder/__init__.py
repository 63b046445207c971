"""From tables of any kind to named numeric features, one encoder for every interface."""
