"""Regression streams that were written before any learner was run on them and have not been changed since."""

import numpy as np
from scipy.special import expit, ndtr

from omkl_lab.unseen.components import DAY, ROWS, YEAR, Maker, Pair, Rng, columns, late, slow, wave


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
    log_sales = 4 - (1.8 + 1.5 * offer) * own + 0.9 * rival + 0.5 * offer + 0.2 * wave(month, 12)
    sales = np.exp(log_sales + 0.2 * rng.standard_t(3, ROWS).clip(-8, 8))
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
    """Millimetres in a day: none on most, gamma-distributed on the others."""
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


NUMBERS: dict[str, Maker] = {
    maker.__name__: maker
    for maker in (
        demand, dead_band, wear, elasticity, wind_power, arrhenius, queue, bilinear, duffing, traffic, battery,
        rainfall, tank, options, delivery, latency,
    )
}  # fmt: skip
