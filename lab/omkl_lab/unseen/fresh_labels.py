"""Classification streams that were written before any learner was run on them and have not been changed since."""

import numpy as np
from scipy.special import expit, softmax

from omkl_lab.unseen.components import DAY, ROWS, Maker, Pair, Rng, columns, drawn, late, slow, sticky, wave


def clicks(rng: Rng) -> Pair:
    """Whether one of 40 people clicks on one of 15 adverts at one of 4 places."""
    who, what, place = rng.integers(40, size=ROWS), rng.integers(15, size=ROWS), rng.integers(4, size=ROWS)
    taste, kind = rng.standard_normal((40, 3)), rng.standard_normal((15, 3))
    log_odds = -2 + (taste[who] * kind[what]).sum(axis=1) - 0.5 * place
    return columns(np.eye(40)[who], np.eye(15)[what], place), (rng.random(ROWS) < expit(log_odds)).astype(float)


def topics(rng: Rng) -> Pair:
    """Which of 4 topics 60 counts of words are from."""
    y = rng.integers(4, size=ROWS)
    words = rng.dirichlet(np.full(60, 0.3), 4)
    return rng.poisson(rng.integers(10, 60, size=(ROWS, 1)) * (0.5 * words[y] + 0.5 / 60)).astype(float), y.astype(
        float
    )


def spam(rng: Rng) -> Pair:
    """Letters with 30 words that are there or not, and links; those who send spam change their words."""
    y, t = rng.random(ROWS) < 0.35, np.arange(ROWS)[:, None] / ROWS
    usual, before, after = rng.beta(0.5, 4, 30), rng.beta(0.5, 2, 30), rng.beta(0.5, 2, 30)
    probability = np.where(y[:, None], (1 - t) * before + t * after, usual)
    links = rng.poisson(np.where(y, 3 - 2 * t[:, 0], 0.7))
    return columns(rng.random((ROWS, 30)) < probability, links), y.astype(float)


def fraud(rng: Rng) -> Pair:
    """One payment of two hundred is not its owner's: at night, far away, soon after another, or all alike."""
    y = rng.random(ROWS) < 0.005
    hour = np.where(y, rng.normal(3, 2, ROWS), rng.normal(15, 4, ROWS)) % DAY
    amount = np.exp(rng.normal(3, 1, ROWS) + 1.5 * y)
    distance = np.exp(rng.normal(1, 1.2, ROWS) + 2 * y * (rng.random(ROWS) < 0.7))
    since = rng.exponential(np.where(y, 0.5, 20))
    return columns(amount, hour, distance, since, rng.integers(8, size=ROWS)), y.astype(float)


def sensor_faults(rng: Rng) -> Pair:
    """What ails a sensor, seen through its readings and a neighbour: nothing, stuck, an offset, noise."""
    y = sticky(rng, 7, 0.03)
    y = np.where(y > 3, 0, y)
    truth = 3 * slow(rng, 0.95)
    reading = truth + 0.2 * rng.standard_normal(ROWS)
    reading = reading + np.where(y == 2, 1.5, 0) + np.where(y == 3, 1.5, 0) * rng.standard_normal(ROWS)
    for t in np.flatnonzero(y == 1):
        reading[t] = reading[t - 1]
    near = truth + 0.3 * rng.standard_normal(ROWS)
    return columns(reading, reading - late(reading, 1), reading - near, late(reading - near, 1)), y.astype(float)


def intrusion(rng: Rng) -> Pair:
    """Connections: usual, flood, scan, guessing of passwords, theft; attacks come in bursts."""
    attack = np.where(rng.random(ROWS) < 0.7, sticky(rng, 8, 0.02), 0)
    y = np.where(attack > 4, 0, attack)
    scale = np.array([[6, 7, 1, 0, 1], [3, 1, 4, 0, 0], [2, 1, 1, 3, 0], [5, 5, 2, 0, 2.5], [8, 4, 0, 0, 4]])
    logs = scale[y] + rng.standard_normal((ROWS, 5)) * np.array([2, 2, 1, 0.7, 1.5])
    return np.floor(np.exp(logs)), y.astype(float)


def triage(rng: Rng) -> Pair:
    """Urgent, soon or later: vital signs away from the usual; three in ten are missing and set to the mean."""
    ill = rng.gamma(1, 1, ROWS)
    side = rng.choice([-1, 1], (ROWS, 5))
    signs = rng.standard_normal((ROWS, 5)) + side * ill[:, None] * np.array([1, 0.8, 0.6, 0.4, 0])
    signs[rng.random(signs.shape) < 0.3] = 0
    usual = np.array([75.0, 120, 37, 16, 50]) + signs * np.array([12, 15, 0.7, 3, 18])
    return usual, np.digitize(ill + 0.2 * rng.standard_normal(ROWS), [0.7, 1.8]).astype(float)


def heating(rng: Rng) -> Pair:
    """Off, low or high: by the hour, the cold outside, and who is at home; summers differ from winters."""
    t = np.arange(ROWS)
    hour, weekend = t % DAY, t // DAY % 7 > 4
    outside = 8 - 9 * np.cos(2 * np.pi * t / ROWS) + 4 * wave(hour - 9, DAY) + 2 * slow(rng, 0.95)
    home = (hour < 8) | (hour > 16) | weekend
    want = (19 - outside) / 6 * np.where(home, 1, 0.4) * np.where((hour > 22) | (hour < 6), 0.5, 1)
    return columns(hour, weekend, outside, t), np.digitize(want + 0.2 * rng.standard_normal(ROWS), [0.5, 1.5]).astype(
        float
    )


def ratings(rng: Rng) -> Pair:
    """One to five stars, in order, from what was expected, the price and the wait."""
    X = rng.standard_normal((ROWS, 6))
    score = X[:, 0] - 0.8 * X[:, 1] + 0.6 * np.minimum(X[:, 2], 0) + 0.7 * rng.logistic(size=ROWS)
    return X, np.digitize(score, [-2, -1, 0, 1.2]).astype(float)


def activity(rng: Rng) -> Pair:
    """Lying, sitting, walking, running, stairs: strength and pace of movements of 6 people, one after another."""
    y, person = sticky(rng, 5, 0.03), np.arange(ROWS) * 6 // ROWS
    strength = np.array([0.05, 0.1, 1, 3, 1.3])[y] * np.exp(0.3 * rng.standard_normal(6))[person]
    pace = np.array([0, 0, 1.8, 2.7, 1.5])[y] + 0.2 * rng.standard_normal(6)[person]
    tilt = np.array([1.3, 0.3, 0.1, 0.2, 0.3])[y] + 0.2 * rng.standard_normal(ROWS)
    power = strength[:, None] * np.exp(0.4 * rng.standard_normal((ROWS, 3)))
    return columns(power, pace + 0.5 * rng.standard_normal(ROWS), tilt), y.astype(float)


def batches(rng: Rng) -> Pair:
    """Whether a part fails: a window of heat and pressure, and batches of raw material that are bad, not recorded."""
    heat, pressure, age = 180 + 6 * slow(rng, 0.9), 5 + 0.5 * slow(rng, 0.9), np.arange(ROWS) % 300
    bad = np.repeat(rng.random(ROWS // 80) < 0.25, 80)
    off = ((heat - 180) / 8) ** 2 + ((pressure - 5) / 0.7) ** 2 + (heat - 180) * (pressure - 5) / 8
    failed = rng.random(ROWS) < expit(-4 + 1.5 * off + 2.5 * bad + age / 150)
    return columns(heat, pressure, age, late(failed.astype(float), 1)), failed.astype(float)


def loans(rng: Rng) -> Pair:
    """Whether a loan is paid late: income with long tails, share of debt, age, six regions."""
    income, debt, age = np.exp(rng.normal(10, 0.7, ROWS)), rng.beta(2, 4, ROWS), rng.uniform(20, 75, ROWS)
    region = rng.integers(6, size=ROWS)
    log_odds = -2.5 + 4 * np.maximum(debt - 0.35, 0) * 3 - 0.8 * (np.log(income) - 10) + ((age - 45) / 20) ** 2
    late_paid = rng.random(ROWS) < expit(log_odds - 0.5 + np.array([0, 0.5, -0.5, 1, 0, 0])[region])
    return columns(income, debt, age, np.eye(6)[region]), late_paid.astype(float)


def crops(rng: Rng) -> Pair:
    """Which of 4 crops does best, by soil, rain and height: each has its own optimum."""
    X = np.column_stack((rng.uniform(4, 9, ROWS), rng.gamma(4, 150, ROWS), rng.uniform(0, 2000, ROWS)))
    best = np.array([[6, 400, 300], [7, 700, 900], [5, 1000, 600], [6.5, 500, 1600]])
    gain = -((((X[:, None] - best) / np.array([1, 250, 500])) ** 2).sum(axis=2))
    return X, drawn(rng, softmax(2 * gain, axis=1))


LABELS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        clicks, topics, spam, fraud, sensor_faults, intrusion, triage, heating, ratings, activity, batches, loans,
        crops,
    )
}  # fmt: skip
