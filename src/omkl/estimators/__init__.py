"""The two doors: scikit-learn and river shells around `Online`. Validation lives here, mathematics does not."""
