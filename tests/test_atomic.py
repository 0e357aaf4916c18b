"""Directories and files appear whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from primexmc.atomic import replace_directory, replace_file
from primexmc.errors import UserError


def names(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def write_half(replacement, name, error):
    with replacement as new:
        (new / name).write_text("half")
        raise error


def test_a_new_directory_in_a_new_place(tmp_path):
    with replace_directory(tmp_path / "a" / "b") as new:
        (new / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert names(tmp_path) == ["a", "a/b", "a/b/x"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o777 & ~mask


def test_a_file_written_for_the_user_alone_is_for_everyone_the_umask_allows(tmp_path):
    mask = os.umask(0o027)
    try:
        with replace_directory(tmp_path / "model") as new:
            (new / "deep").mkdir()
            (new / "deep" / "x").touch(mode=0o600)
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "model" / "deep" / "x").stat().st_mode) == 0o640


def test_the_old_one_is_replaced_and_the_rest_comes_along(tmp_path):
    old = tmp_path / "model"
    (old / "training" / "deep").mkdir(parents=True)
    (old / "kept" / "deep").mkdir(parents=True)
    for file in ("x", "log", "kept/deep/y", "training/deep/z"):
        (old / file).write_text("old")
    with replace_directory(old, discard=("training",)) as new:
        (new / "x").write_text("new")
    assert names(tmp_path) == ["model", "model/kept", "model/kept/deep", "model/kept/deep/y", "model/log", "model/x"]
    assert [(old / file).read_text() for file in ("x", "log", "kept/deep/y")] == ["new", "old", "old"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("there_before", [True, False])
def test_when_the_body_fails_nothing_has_changed(tmp_path, error, there_before):
    if there_before:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "x").write_text("old")
    before = names(tmp_path)
    with pytest.raises(error):
        write_half(replace_directory(tmp_path / "model"), "x", error)
    assert names(tmp_path) == before
    assert not there_before or (tmp_path / "model" / "x").read_text() == "old"


def test_a_file_that_fails_leaves_the_old_one(tmp_path):
    file = tmp_path / "out.json"
    with replace_file(file) as new:
        new.write_text("one")
    assert file.read_text() == "one"
    with pytest.raises(RuntimeError):
        write_half(replace_file(file), "", RuntimeError)
    assert file.read_text() == "one" and names(tmp_path) == ["out.json"]
    with pytest.raises(UserError, match="a directory"), replace_file(tmp_path):
        pass
