"""Where a training writes: never over somebody's files, never where another one writes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from training.cases import make_corpus, quick

from primexmc.errors import UserError
from primexmc.training.place import check_place, nothing_left_behind
from primexmc.training.train import train

HOLDS_THE_PLACE = """
import sys
from pathlib import Path
from primexmc.training.place import nothing_left_behind
with nothing_left_behind(Path(sys.argv[1])):
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["notes.txt", "week 1/diary.txt"])
@pytest.mark.parametrize("model", [True, False])
def test_a_folder_of_that_name_that_is_somebody_elses(tmp_path, name, model):
    mine = tmp_path / "project" / "training" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work", encoding="utf-8")
    if model:
        (tmp_path / "project" / "primexmc.json").write_text("{}", encoding="utf-8")
    for overwrite in (False, True):
        with pytest.raises(UserError, match=r"training/.* not of a training"):
            train(make_corpus(40), "static-cpu", quick(), out=tmp_path / "project", overwrite=overwrite, quiet=True)
    assert mine.read_text(encoding="utf-8") == "years of work"


@pytest.mark.parametrize("left", [[], ["checkpoint-000003"], [".checkpoint-000003.new-abc"]])
def test_what_a_killed_training_leaves_is_no_obstacle(tmp_path, left):
    for name in left:
        (tmp_path / "training" / name).mkdir(parents=True)
    (tmp_path / "training").mkdir(exist_ok=True)
    (tmp_path / "metrics.jsonl").touch()
    check_place(tmp_path, resume=True, overwrite=False)


def test_a_second_training_is_refused_while_the_first_one_runs(tmp_path):
    place = tmp_path / "model"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_PLACE, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "begun\n"
        (place / "training").mkdir()
        (place / "metrics.jsonl").write_text("first\n", encoding="utf-8")
        with pytest.raises(UserError, match="model: another training is writing there"):
            train(make_corpus(40), "static-cpu", quick(), out=place, quiet=True)
        assert (place / "metrics.jsonl").read_text(encoding="utf-8") == "first\n"
    finally:
        first.kill()
        first.communicate()
    with nothing_left_behind(place):  # its lock is gone with it
        pass
