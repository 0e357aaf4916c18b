"""A made-up report with everything that a page may hold, and texts that try to break out of it."""

from __future__ import annotations

EVIL = """<script>alert("1")</script><img src=x onerror='alert(2)'>&amp;"""


def scores(p):
    buckets = {
        name: {"labels": labels, "queries": 500, "positives": 2000, "P@1": p / 3, "R@10": p * share}
        for name, labels, share in (("head", 28, 1.1), ("torso", 231, 0.8), ("tail", 14_274, 0.5))
    }
    numbers = {"P@1": p, "P@3": p * 0.8, "P@5": p * 0.6, "nDCG@5": p * 0.8, "PSP@1": p * 0.3, "PSP@5": p * 0.6}
    return {**numbers, "R@10": p * 0.8, "R@100": p * 1.1, "queries": 9183, "labels": 14_533, "buckets": buckets}


def sample_report():
    log = []
    for run, epochs in (("choose", 6), ("refit", 4)):
        for epoch in range(1, epochs + 1):
            place = {"run": run, "epoch": epoch, "step": 22 * epoch, "seconds": 1.5 * epoch}
            log.append({"phase": "train", **place, "loss": 3 / epoch, "violators": 0.2, "queries_per_s": 900})
            if run == "choose":
                log.append({"phase": "validation", **place, "P@1": 70 - 30 / epoch, "P@5": 48 - 20 / epoch})
    predictions = [{"label": f"label {n} {EVIL}", "score": 0.9 - n / 10, "right": n % 2 == 0} for n in range(5)]
    return {
        "title": f"A report {EVIL}",
        "facts": {"Labels": "14,533", f"Name {EVIL}": f"value {EVIL}"},
        "results": {"PRIME": scores(75.3), "tf-idf neighbours": scores(71.4), f"method {EVIL}": scores(9.0)},
        "log": log,
        "samples": [
            {"text": f"A bridge over a river {EVIL}", "predictions": predictions, "missed": [f"boat {EVIL}", "sky"]},
            {"text": "long" * 60, "predictions": predictions[:1], "missed": []},
            {"text": "", "predictions": [], "missed": []},
        ],
    }
