"""The metrics again, from their definitions, one row and one rank at a time: the oracle of these tests."""

from __future__ import annotations

import math


def weight(count, num_train, a, b):
    return 1 + (math.log(num_train) - 1) * (b + 1) ** a * (count + b) ** (-a)


def slow_metrics(pred, true_rows, train_rows, num_labels, a=0.55, b=1.5, *, ks=(1, 3, 5), shallow=False):
    """`true_rows` and `train_rows` are lists of sets of labels; `pred` is a list of equally long lists.

    `shallow`: R@k also of predictions that do not go so deep.
    """
    counts = [sum(label in row for row in train_rows) for label in range(num_labels)]
    w = [weight(counts[label], len(train_rows), a, b) for label in range(num_labels)]
    scores, n = {}, len(pred)
    for k in ks:
        p = ndcg = psp = psp_ideal = psndcg = psndcg_ideal = 0.0
        for row, true in zip(pred, true_rows, strict=True):
            right = first_hits(row, true)
            full = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(true), k) + 1))
            best = sorted((w[label] for label in true), reverse=True)[:k]
            psp_ideal += sum(best) / k
            if true:
                psndcg_ideal += sum(x / math.log2(rank + 1) for rank, x in enumerate(best, start=1)) / full
            for rank, label in right:
                if rank <= k:
                    p += 1 / k
                    ndcg += 1 / math.log2(rank + 1) / full
                    psp += w[label] / k
                    psndcg += w[label] / math.log2(rank + 1) / full
        scores[f"P@{k}"] = 100 * p / n
        scores[f"nDCG@{k}"] = 100 * ndcg / n
        scores[f"PSP@{k}"] = 100 * psp / psp_ideal if psp_ideal else 0.0
        scores[f"PSnDCG@{k}"] = 100 * psndcg / psndcg_ideal if psndcg_ideal else 0.0
    for k in (10, 100):
        if len(pred[0]) < min(k, num_labels) and not shallow:
            continue
        total = 0.0
        for row, true in zip(pred, true_rows, strict=True):
            if true:
                total += sum(rank <= k for rank, _ in first_hits(row, true)) / len(true)
        scores[f"R@{k}"] = 100 * total / n
    return scores


def first_hits(row, true):
    """(rank from 1, label) of right predictions; a label counts where it appears first."""
    seen, right = set(), []
    for rank, label in enumerate(row, start=1):
        if label in true and label not in seen:
            right.append((rank, label))
        seen.add(label)
    return right


def slow_buckets(pred, true_rows, counts, ks=(1, 3, 5), recall_ks=(5, 10, 100)):
    """Head, torso, tail by going through the labels one by one."""
    total, before, bucket_of = sum(counts), 0, {}
    for label in sorted(range(len(counts)), key=lambda label: (-counts[label], label)):
        third = 0 if before < total / 3 else 1 if before < 2 * total / 3 else 2
        bucket_of[label] = third if counts[label] else 2
        before += counts[label]
    result = {}
    for number, name in enumerate(("head", "torso", "tail")):
        members = {label for label, bucket in bucket_of.items() if bucket == number}
        inside = [true & members for true in true_rows]
        asked = [i for i, true in enumerate(inside) if true]
        scores = {"labels": len(members), "queries": len(asked), "positives": sum(map(len, inside))}
        hits = [first_hits(row, true) for row, true in zip(pred, inside, strict=True)]
        for k in ks:
            scores[f"P@{k}"] = 100 * sum(rank <= k for row in hits for rank, _ in row) / (k * len(pred))
        for k in recall_ks:
            if len(pred[0]) >= min(k, len(counts)):
                shares = [sum(rank <= k for rank, _ in hits[i]) / len(inside[i]) for i in asked]
                scores[f"R@{k}"] = 100 * sum(shares) / max(1, len(asked))
        result[name] = scores
    return result
