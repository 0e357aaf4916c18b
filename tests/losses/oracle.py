"""The losses again, slowly: plain loops over Python floats, gradients derived by hand. Nothing is taken from primexmc.

`sim[q][m]` are similarities, `true[q][m]` 0 or 1, `drawn[q]` the column of the positive that a row meets.
A gradient is a dict {(q, m): value}.
"""

from __future__ import annotations

import math
from collections import defaultdict


def negatives(sim_q, true_q, k):
    """The k most similar columns that are not true."""
    columns = [m for m, is_true in enumerate(true_q) if not is_true]
    return sorted(columns, key=lambda m: -sim_q[m])[:k]


def hinge(d, low, high, form, detach, tie):
    """Value and derivative by d, case by case as the method lists them."""
    if form == "inverted" and 0 < d < low:
        return d + low, 1.0
    if d > high:
        return 0.0, 0.0
    if d >= low:  # a tie: the margin is d itself; m - d has derivative -1, or 0 when the margin is not detached
        return 0.0, (-tie if detach else 0.0)
    if d > -low:
        return low - d, -1.0
    if d >= -high:
        return -2 * d, (-1.0 if detach else -2.0)
    return high - d, -1.0


def dynamic_margin(sim, true, drawn, *, low=0.1, high=0.3, k=100, tau=0.1, tie=0.0, form="max", detach=True):
    """Loss, gradient, violators."""
    total, gradient, violators = 0.0, defaultdict(float), 0
    for q, (sim_q, true_q) in enumerate(zip(sim, true, strict=True)):
        near, p = negatives(sim_q, true_q, k), drawn[q]
        if not any(true_q) or not near:
            continue
        values = [hinge(sim_q[p] - sim_q[n], low, high, form, detach, tie) for n in near]
        violators += sum(value > 0 for value, _ in values)
        if tau is None:
            weights = [1 / len(near) for _ in near]
        else:
            powers = [
                math.exp(sim_q[n] / tau) if value > 0 else 0.0 for n, (value, _) in zip(near, values, strict=True)
            ]
            weights = [power / sum(powers) if sum(powers) else 0.0 for power in powers]
        loss = sum(weight * value for weight, (value, _) in zip(weights, values, strict=True))
        total += loss
        for n, weight, (value, slope) in zip(near, weights, values, strict=True):
            gradient[q, p] += weight * slope / len(sim)
            gradient[q, n] -= weight * slope / len(sim)
            if tau is not None:  # d softmax: w_n (value_n - loss) / tau
                gradient[q, n] += weight * (value - loss) / tau / len(sim)
    return total / len(sim), gradient, violators


def decoupled_softmax(sim, true, *, temperature=0.05):
    """Loss and gradient: -log(e^p / (e^p + sum of e^n)) per positive."""
    total, gradient = 0.0, defaultdict(float)
    for q, (sim_q, true_q) in enumerate(zip(sim, true, strict=True)):
        trues = [m for m, is_true in enumerate(true_q) if is_true]
        near = [m for m, is_true in enumerate(true_q) if not is_true]
        for p in trues:
            powers = {m: math.exp((sim_q[m] - max(sim_q)) / temperature) for m in [p, *near]}
            share = {m: power / sum(powers.values()) for m, power in powers.items()}
            total -= math.log(share[p]) / len(trues) / len(sim)
            for m in powers:
                gradient[q, m] += (share[m] - (m == p)) / temperature / len(trues) / len(sim)
    return total, gradient


def regulariser(text, proto, true, drawn, *, margin=0.1, k=100):
    """R, its gradient by the text similarities and by the prototype similarities."""
    up, down = [], []  # (value, q, m): positives want proto above text, negatives below
    for q, true_q in enumerate(true):
        if any(true_q):
            up.append((text[q][drawn[q]] - proto[q][drawn[q]] + margin, q, drawn[q]))
        down += [(proto[q][n] - text[q][n] + margin, q, n) for n in negatives(proto[q], true_q, k)]
    loss, by_text, by_proto = 0.0, defaultdict(float), defaultdict(float)
    for sign, pairs in ((1.0, up), (-1.0, down)):
        violating = [pair for pair in pairs if pair[0] > 0]
        for value, q, m in violating:
            loss += value / len(violating) / 2
            by_text[q, m] += sign / len(violating) / 2
            by_proto[q, m] -= sign / len(violating) / 2
    return loss, by_text, by_proto


def contrastive(sim, true, drawn, *, temperature=0.05):
    """Loss and gradient: -log(e^p / (e^p + sum of e^n)) for the drawn positive of each row."""
    total, gradient = 0.0, defaultdict(float)
    for q, (sim_q, true_q) in enumerate(zip(sim, true, strict=True)):
        near, p = [m for m, is_true in enumerate(true_q) if not is_true], drawn[q]
        if not any(true_q) or not near:
            continue
        powers = {m: math.exp((sim_q[m] - max(sim_q)) / temperature) for m in [p, *near]}
        total -= math.log(powers[p] / sum(powers.values())) / len(sim)
        for m, power in powers.items():
            gradient[q, m] += (power / sum(powers.values()) - (m == p)) / temperature / len(sim)
    return total, gradient
