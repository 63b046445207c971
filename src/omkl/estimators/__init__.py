"""Estimators for scikit-learn and river, both around the same cores."""
