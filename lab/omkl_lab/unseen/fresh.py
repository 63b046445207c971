"""Streams written before any learner was run on them, and left as they were afterwards."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtr, softmax

from omkl.arrays import Matrix, Vector

ROWS = 2000
Rng = np.random.Generator
Pair = tuple[Matrix, Vector]
Maker = Callable[[Rng], Pair]

DAY, YEAR = 24, 365


# What they are made of


def columns(*parts: Any) -> Matrix:
    return np.column_stack([np.asarray(part, float) for part in parts])


def slow(rng: Rng, keep: float) -> Vector:
    """A series of mean 0 and variance 1 in which each value keeps that share of the one before."""
    return lfilter([np.sqrt(1 - keep**2)], [1, -keep], rng.standard_normal(ROWS + 500))[500:]


def late(series: Vector, by: int) -> Vector:
    """The series as it was so many rows ago."""
    return np.concatenate((np.full(by, series[0]), series[:-by]))


def wave(t: Any, period: float) -> Vector:
    return np.sin(2 * np.pi * np.asarray(t, float) / period)


def drawn(rng: Rng, chances: Matrix) -> Vector:
    """A label for each row, by its chances."""
    at = rng.random((len(chances), 1))
    return np.asarray(np.sum(at > np.cumsum(chances, axis=1)[:, :-1], axis=1), float)


def sticky(rng: Rng, labels: int, leave: float) -> Any:
    """Labels that stay for a while."""
    start = np.maximum.accumulate(np.where(rng.random(ROWS) < leave, np.arange(ROWS), 0))
    return rng.integers(labels, size=ROWS)[start]


# Numbers


def demand(rng: Rng) -> Pair:
    """Loaves sold in a day: weekdays, season, holidays and the day before them, offers."""
    day = np.arange(ROWS)
    holiday, offer = rng.random(ROWS) < 0.03, rng.random(ROWS) < 0.15
    eve = np.r_[holiday[1:], False]
    level = 80 * np.array([1.0, 0.9, 0.95, 1.0, 1.3, 1.6, 0.4])[day % 7] * (1 + 0.2 * wave(day, YEAR))
    level *= np.where(holiday, 0.3, 1) * np.where(eve, 1.5, 1) * np.where(offer, 1.25, 1)
    sold = rng.poisson(level * np.exp(0.1 * slow(rng, 0.95))).astype(float)
    return columns(day % 7, day % YEAR, holiday, eve, offer, late(sold, 1), late(sold, 7)), sold


def dead_band(rng: Rng) -> Pair:
    """Flow through a valve: none while the signal is small, no more once it is large."""
    signal, heat, supply = 1.2 * slow(rng, 0.9), slow(rng, 0.99), rng.uniform(4, 6, ROWS)
    opened = np.sign(signal) * np.maximum(np.abs(signal) - 0.5, 0)
    flow = np.clip(supply * opened * (1 + 0.2 * heat), -5, 5)
    return columns(signal, 20 + 8 * heat, supply), flow + 0.1 * rng.standard_normal(ROWS)


def wear(rng: Rng) -> Pair:
    """Vibration of a machine that wears by load and speed until it is serviced."""
    load, speed, outside = rng.uniform(0.2, 1, ROWS), rng.choice([900.0, 1500.0, 3000.0], ROWS), slow(rng, 0.99)
    worn, hours = np.zeros(ROWS), np.zeros(ROWS)
    for t in range(1, ROWS):
        if rng.random() > 0.005 + 0.03 * (worn[t - 1] > 2.5):
            worn[t], hours[t] = worn[t - 1] + 0.03 * load[t] * speed[t] / 1500, hours[t - 1] + 8
    vibration = (0.5 + worn**1.5) * (0.5 + load) * np.sqrt(speed / 1500) * np.exp(0.05 * rng.standard_normal(ROWS))
    return columns(load, speed, hours, 40 + 20 * load + 5 * outside), vibration


def elasticity(rng: Rng) -> Pair:
    """Sales by own and rival price, an offer that makes buyers look at the price, months; long tails."""
    own, rival = 0.3 * slow(rng, 0.8), 0.3 * slow(rng, 0.95)
    offer, month = rng.random(ROWS) < 0.2, np.arange(ROWS) // 30 % 12
    said = 4 - (1.8 + 1.5 * offer) * own + 0.9 * rival + 0.5 * offer + 0.2 * wave(month, 12)
    sales = np.exp(said + 0.2 * rng.standard_t(3, ROWS).clip(-8, 8))
    return columns(10 * np.exp(own), 10 * np.exp(rival), offer, month), sales


def wind_power(rng: Rng) -> Pair:
    """Kilowatts of a turbine: the cube of the wind between cut-in and rated speed, none in a storm, a wake."""
    wind, air = 8 * np.exp(0.45 * slow(rng, 0.95)), 1.2 + 0.05 * slow(rng, 0.99)
    angle = np.cumsum(0.15 * rng.standard_normal(ROWS))
    power = np.clip(1.2 * air * (wind**3 - 27), 0, 2000) * (wind < 20)
    power *= np.where(np.cos(angle - 1) > 0.9, 0.75, 1)
    gust = wind * np.exp(0.05 * rng.standard_normal(ROWS))  # what the instrument says
    return columns(gust, np.cos(angle), np.sin(angle), air), power + 20 * rng.standard_normal(ROWS)


def arrhenius(rng: Rng) -> Pair:
    """Conversion in a reactor: temperature in kelvin, two concentrations, time, a catalyst."""
    kelvin, minutes = rng.uniform(300, 400, ROWS), rng.exponential(10, ROWS)
    first, second, catalyst = rng.uniform(0.1, 2, ROWS), rng.uniform(0.1, 2, ROWS), rng.random(ROWS) < 0.4
    rate = np.exp(17 - np.where(catalyst, 50e3, 56e3) / (8.314 * kelvin)) * first * np.sqrt(second)
    part = 1 - np.exp(-rate * minutes)
    return columns(kelvin, minutes, first, second, catalyst), part + 0.02 * rng.standard_normal(ROWS)


def queue(rng: Rng) -> Pair:
    """Callers who wait: those who waited, those who call by the hour, those who are served by the staff."""
    hour = np.arange(ROWS) % DAY
    calls = 30 + 20 * wave(hour - 7, DAY) + 12 * (hour == 9)
    staff = np.maximum(np.round(calls / 10 + rng.normal(0.3, 0.8, ROWS)), 1)
    waiting = np.zeros(ROWS)
    for t in range(ROWS):
        waiting[t] = max(waiting[t - 1] * 0.9 + rng.poisson(calls[t]) - rng.poisson(10 * staff[t]), 0)
    return columns(hour, staff, late(waiting, 1), late(staff, 1)), waiting


def bilinear(rng: Rng) -> Pair:
    """A system whose gain is its own state."""
    u, y = rng.uniform(-1, 1, ROWS), np.zeros(ROWS)
    for t in range(2, ROWS):
        y[t] = 0.5 * y[t - 1] - 0.2 * y[t - 2] + 0.6 * u[t - 1] + 0.7 * y[t - 1] * u[t - 1] + 0.1 * rng.normal()
    return columns(late(y, 1), late(y, 2), late(u, 1), late(u, 2)), y


def duffing(rng: Rng) -> Pair:
    """Where a driven spring with two wells will be four tenths later."""
    x, v, path = 0.5, 0.0, []
    for k in range(20 * (ROWS + 1)):
        if k % 20 == 0:
            path.append((x, v, np.cos(0.024 * k), np.sin(0.024 * k)))
        v += 0.02 * (-0.3 * v + x - x**3 + 0.5 * np.cos(0.024 * k))
        x += 0.02 * v
    seen = np.array(path) + np.array([0.02, 0.02, 0, 0]) * rng.standard_normal((ROWS + 1, 4))
    return seen[:-1], seen[1:, 0]


def traffic(rng: Rng) -> Pair:
    """Cars in a quarter of an hour: two rushes on working days, rain, and roadworks from the middle on."""
    t = np.arange(ROWS)
    hour, weekday, rain = t / 4 % DAY, t // 96 % 7, np.maximum(slow(rng, 0.95) - 1, 0)
    rush = np.exp(-((hour - 8) ** 2) / 2) + 0.8 * np.exp(-((hour - 17.5) ** 2) / 4)
    noon = np.exp(-((hour - 14) ** 2) / 18)
    cars = 20 + np.where(weekday < 5, 400 * rush + 80 * noon, 200 * noon)
    cars *= (1 - 0.15 * rain) * np.where(t < ROWS // 2, 1, 0.7)
    count = rng.poisson(np.maximum(cars, 1) * np.exp(0.1 * slow(rng, 0.9))).astype(float)
    return columns(hour, weekday, rain, late(count, 1)), count


def battery(rng: Rng) -> Pair:
    """Volts of a cell that is emptied again and again, loses capacity, and sags by current and cold."""
    ampere, warm = rng.uniform(0.5, 3, ROWS), 20 + 8 * slow(rng, 0.99)
    drawn_off, cycle = np.zeros(ROWS), np.zeros(ROWS)
    for t in range(1, ROWS):
        full = drawn_off[t - 1] > 2.6 - 0.01 * cycle[t - 1]
        drawn_off[t], cycle[t] = (0, cycle[t - 1] + 1) if full else (drawn_off[t - 1] + ampere[t] / 30, cycle[t - 1])
    left = np.maximum(1 - drawn_off / (3 - 0.01 * cycle), 0.02)
    volts = 3.3 + 0.6 * left + 0.08 * np.log(left) - ampere * (0.05 + 0.002 * np.maximum(20 - warm, 0))
    return columns(ampere, warm, drawn_off, cycle), volts + 0.01 * rng.standard_normal(ROWS)


def rainfall(rng: Rng) -> Pair:
    """Millimetres in a day: none on most, a gamma law on the others."""
    pressure, damp, warm = slow(rng, 0.8), slow(rng, 0.7), slow(rng, 0.95)
    wet = rng.random(ROWS) < expit(-1.5 - 1.2 * pressure + 1.5 * damp)
    amount = rng.gamma(0.8, 5 * np.exp(0.4 * damp + 0.2 * warm))
    fallen = np.where(wet, amount, 0)
    inputs = columns(1013 + 9 * pressure, pressure - late(pressure, 1), 70 + 12 * damp, 12 + 7 * warm)
    return np.column_stack((inputs, late(fallen, 1))), fallen


def tank(rng: Rng) -> Pair:
    """Level of a tank under a controller: the valve is felt five rows later, the outflow goes as a root."""
    wish = np.repeat(rng.uniform(1, 4, ROWS // 50), 50)
    level, valve, total = np.full(ROWS, 2.0), np.full(ROWS, 0.5), 0.0
    for t in range(6, ROWS):
        gain = 0.3 * valve[t - 6] - 0.12 * np.sqrt(level[t - 1])
        level[t] = np.clip(level[t - 1] + gain + 0.02 * rng.normal(), 0.05, 5)
        total = np.clip(total + 0.01 * (wish[t] - level[t]), -1, 1)
        valve[t] = np.clip(0.5 + 0.15 * (wish[t] - level[t]) + total, 0, 1)
    seen = level + 0.02 * rng.standard_normal(ROWS)
    return columns(wish, late(seen, 1), late(seen, 2), *(late(valve, k) for k in range(1, 9))), seen


def options(rng: Rng) -> Pair:
    """Price of a call by Black and Scholes, a hundredth of noise."""
    spot, strike = 100 * np.exp(0.3 * slow(rng, 0.99)), 100 * np.exp(0.2 * rng.standard_normal(ROWS))
    years, sigma, rate = rng.uniform(0.05, 2, ROWS), rng.uniform(0.1, 0.6, ROWS), 0.02 + 0.01 * slow(rng, 0.99)
    root = sigma * np.sqrt(years)
    first = (np.log(spot / strike) + rate * years) / root + root / 2
    price = spot * ndtr(first) - strike * np.exp(-rate * years) * ndtr(first - root)
    return columns(spot, strike, years, sigma, rate), price * (1 + 0.01 * rng.standard_normal(ROWS))


def delivery(rng: Rng) -> Pair:
    """Minutes of a courier in a town of right angles with a river, by the hour; skewed noise."""
    a, b, hour = rng.uniform(0, 10, (ROWS, 2)), rng.uniform(0, 10, (ROWS, 2)), rng.uniform(7, 22, ROWS)
    way = np.abs(a - b).sum(axis=1) + 3 * ((a[:, 0] > 5) != (b[:, 0] > 5))
    pace = 2.5 + 1.5 * np.exp(-((hour - 17) ** 2) / 3)
    return columns(a, b, hour), 5 + way * pace + rng.gamma(1.5, 4, ROWS)


def latency(rng: Rng) -> Pair:
    """Milliseconds of a request: size with long tails, a cache, five servers, load; now and then a retry."""
    size, hit, server = np.exp(8 + 1.2 * rng.standard_normal(ROWS)), rng.random(ROWS) < 0.6, rng.integers(5, size=ROWS)
    load = expit(slow(rng, 0.97))
    work = np.where(hit, 5, 20 + size / 500) * np.array([1, 1, 1.2, 2, 0.8])[server] / (1.05 - load)
    retry = np.where(rng.random(ROWS) < 0.02, 500, 0)
    return columns(size, hit, load, np.eye(5)[server]), work * np.exp(0.2 * rng.standard_normal(ROWS)) + retry


# Labels


def clicks(rng: Rng) -> Pair:
    """Whether one of 40 people clicks on one of 15 adverts at one of 4 places."""
    who, what, place = rng.integers(40, size=ROWS), rng.integers(15, size=ROWS), rng.integers(4, size=ROWS)
    taste, kind = rng.standard_normal((40, 3)), rng.standard_normal((15, 3))
    said = -2 + (taste[who] * kind[what]).sum(axis=1) - 0.5 * place
    return columns(np.eye(40)[who], np.eye(15)[what], place), (rng.random(ROWS) < expit(said)).astype(float)


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
    chance = np.where(y[:, None], (1 - t) * before + t * after, usual)
    links = rng.poisson(np.where(y, 3 - 2 * t[:, 0], 0.7))
    return columns(rng.random((ROWS, 30)) < chance, links), y.astype(float)


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
    said = X[:, 0] - 0.8 * X[:, 1] + 0.6 * np.minimum(X[:, 2], 0) + 0.7 * rng.logistic(size=ROWS)
    return X, np.digitize(said, [-2, -1, 0, 1.2]).astype(float)


def activity(rng: Rng) -> Pair:
    """Lying, sitting, walking, running, stairs: strength and pace of movements of 6 people, one after another."""
    y, person = sticky(rng, 5, 0.03), np.arange(ROWS) * 6 // ROWS
    strength = np.array([0.05, 0.1, 1, 3, 1.3])[y] * np.exp(0.3 * rng.standard_normal(6))[person]
    pace = np.array([0, 0, 1.8, 2.7, 1.5])[y] + 0.2 * rng.standard_normal(6)[person]
    tilt = np.array([1.3, 0.3, 0.1, 0.2, 0.3])[y] + 0.2 * rng.standard_normal(ROWS)
    power = strength[:, None] * np.exp(0.4 * rng.standard_normal((ROWS, 3)))
    return columns(power, pace + 0.5 * rng.standard_normal(ROWS), tilt), y.astype(float)


def batches(rng: Rng) -> Pair:
    """Whether a part fails: a window of heat and pressure, and batches of raw material that are bad, unsaid."""
    heat, pressure, age = 180 + 6 * slow(rng, 0.9), 5 + 0.5 * slow(rng, 0.9), np.arange(ROWS) % 300
    bad = np.repeat(rng.random(ROWS // 80) < 0.25, 80)
    off = ((heat - 180) / 8) ** 2 + ((pressure - 5) / 0.7) ** 2 + (heat - 180) * (pressure - 5) / 8
    failed = rng.random(ROWS) < expit(-4 + 1.5 * off + 2.5 * bad + age / 150)
    return columns(heat, pressure, age, late(failed.astype(float), 1)), failed.astype(float)


def loans(rng: Rng) -> Pair:
    """Whether a loan is paid late: income with long tails, share of debt, age, six regions."""
    income, debt, age = np.exp(rng.normal(10, 0.7, ROWS)), rng.beta(2, 4, ROWS), rng.uniform(20, 75, ROWS)
    region = rng.integers(6, size=ROWS)
    said = -2.5 + 4 * np.maximum(debt - 0.35, 0) * 3 - 0.8 * (np.log(income) - 10) + ((age - 45) / 20) ** 2
    late_paid = rng.random(ROWS) < expit(said - 0.5 + np.array([0, 0.5, -0.5, 1, 0, 0])[region])
    return columns(income, debt, age, np.eye(6)[region]), late_paid.astype(float)


def crops(rng: Rng) -> Pair:
    """Which of 4 crops does best, by soil, rain and height: each has its own optimum."""
    X = np.column_stack((rng.uniform(4, 9, ROWS), rng.gamma(4, 150, ROWS), rng.uniform(0, 2000, ROWS)))
    best = np.array([[6, 400, 300], [7, 700, 900], [5, 1000, 600], [6.5, 500, 1600]])
    gain = -((((X[:, None] - best) / np.array([1, 250, 500])) ** 2).sum(axis=2))
    return X, drawn(rng, softmax(2 * gain, axis=1))


NUMBERS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        demand, dead_band, wear, elasticity, wind_power, arrhenius, queue, bilinear, duffing, traffic, battery,
        rainfall, tank, options, delivery, latency,
    )
}  # fmt: skip
LABELS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        clicks, topics, spam, fraud, sensor_faults, intrusion, triage, heating, ratings, activity, batches, loans,
        crops,
    )
}  # fmt: skip
