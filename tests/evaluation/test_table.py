"""Tables for the screen."""

from __future__ import annotations

from primexmc.evaluation.table import format_result, format_table


def test_one_row_a_method():
    table = format_table({"PRIME": {"P@1": 75.26, "P@5": 50.0}, "popularity": {"P@1": 7.0, "queries": 3}})
    assert table.splitlines() == [
        "             P@1   P@5",
        "PRIME       75.3  50.0",
        "popularity   7.0",
    ]


def test_one_result_by_depth_with_its_buckets():
    bucket = {"labels": 1200, "queries": 4, "positives": 10, "P@1": 1.0, "R@10": 55.55}
    result = {"P@1": 10.0, "P@3": 20.0, "nDCG@1": 30.0, "R@10": 40.0, "queries": 9183, "labels": 14533, "seconds": 2.0}
    lines = format_result(result | {"buckets": {"head": bucket, "tail": bucket}}).splitlines()
    assert lines[0].split() == ["in", "percent,", "at", "1", "3", "10"]
    assert lines[1].split() == ["P", "10.0", "20.0"]
    assert [line.split() for line in lines if line.startswith("tail")] == [["tail", "1,200", "10", "1.0", "55.5"]]
    assert lines[-1] == "9,183 queries, 14,533 labels in 2.0 s"


def test_recall_by_label_frequency_stands_beside_recall():
    buckets = {"head": {"R@10": 61.0}, "torso": {"R@10": 42.0}, "tail": {"R@10": 13.0}}
    table = format_table({"PRIME": {"P@1": 75.0, "R@10": 50.0, "buckets": buckets}, "popularity": {"P@1": 7.0}})
    *lines, note = table.splitlines()
    assert note.startswith("(head, torso, tail: R@10")
    assert [line.split() for line in lines] == [
        ["P@1", "R@10", "head", "torso", "tail"],
        ["PRIME", "75.0", "50.0", "61.0", "42.0", "13.0"],
        ["popularity", "7.0"],
    ]
