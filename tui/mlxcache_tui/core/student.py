"""Student's t distribution: its quantiles, without a library.

The distribution function by the regularised incomplete beta function (continued fraction, Abramowitz and Stegun 26.5.8
with 26.7.1), its inverse by Newton's method.
"""

import math

_STEPS = 200
_CLOSE = 1e-13
_TINY = 1e-300


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t) with `df` > 0 degrees of freedom, whole or not."""
    tail = _beta(df / (df + t * t), df / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


def t_quantile(probability: float, df: float) -> float:
    """The t with P(T ≤ t) = probability (above 0, below 1).

    Raises:
        ValueError: no such probability, or df is not above 0.
    """
    if not 0 < probability < 1 or not df > 0:
        raise ValueError(f"no t quantile of {probability} with {df} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    t = 0.0
    for _ in range(_STEPS):
        step = (probability - t_cdf(t, df)) / _density(t, df)
        t += step
        if step <= _CLOSE * max(1.0, t):  # from 0 on the function bends down, so that no step goes too far
            break
    return t


def _density(t: float, df: float) -> float:
    front = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    return math.exp(front - (df + 1) / 2 * math.log1p(t * t / df))


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return min(1.0, max(0.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)  # where the fraction runs slowly, the other tail is taken
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 1 + d1/(1 + d2/(1 + …)), by Lentz's method."""
    value = c = 1.0
    d = 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / ((1 + term * d) or _TINY)
        c = (1 + term / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return value
