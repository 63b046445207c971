"""Write synthetic house sales with numeric and categorical columns as CSV, as input for `omkl run`.

Usage: python examples/prices.py > data.csv && omkl run data.csv --target price
"""

import csv
import sys

import numpy as np

SALES = 8000
DISTRICTS = {"harbour": 1.35, "hill": 1.2, "centre": 1.1, "mill": 0.9, "meadow": 0.75}

rng = np.random.default_rng(0)
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["area", "rooms", "built", "district", "garden", "price"])
for _ in range(SALES):
    area = float(np.clip(rng.normal(95, 25), 25, 180))
    rooms = int(np.clip(round(area / 28 + rng.normal(0, 0.8)), 1, 12))
    built = int(rng.integers(1890, 2025))
    district = str(rng.choice(list(DISTRICTS)))
    garden = bool(rng.random() < 0.35)

    # The price per square metre falls with the area; the oldest and the newest houses are the most expensive.
    expected = 6 * area**0.8 * DISTRICTS[district] * (1 + ((built - 1957) / 110) ** 2) + 30 * garden
    price = expected + rng.normal(0, 15)
    out.writerow([f"{area:.0f}", rooms, built, district, "yes" if garden else "no", f"{price:.1f}"])
