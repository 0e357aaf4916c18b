"""A preset may build on another one, and names only what differs."""

from __future__ import annotations

import pytest

from primexmc import presets
from primexmc.cli import main
from primexmc.errors import UserError
from primexmc.presets import inherited_values, load_preset, preset_lineage, preset_names, preset_text


@pytest.fixture
def family(tmp_path, monkeypatch):
    """child -> parent -> elder"""
    (tmp_path / "elder.toml").write_text("# elder.\n[training]\nepochs = 1\nseed = 2\n[loss]\nname = 'softmax'\n")
    (tmp_path / "parent.toml").write_text("# parent.\nbase = 'elder'\n[training]\nepochs = 3\n")
    (tmp_path / "child.toml").write_text("# child.\nbase = 'parent'\n[training]\nseed = 4\n[data]\nseparator = ';'\n")
    monkeypatch.setattr(presets, "_folder", lambda: tmp_path)
    return tmp_path


def test_the_nearest_value_wins(family):
    assert load_preset("child") == {
        "training": {"epochs": 3, "seed": 4},
        "loss": {"name": "softmax"},
        "data": {"separator": ";"},
    }
    assert load_preset("elder") == {"training": {"epochs": 1, "seed": 2}, "loss": {"name": "softmax"}}


def test_lineage_goes_from_general_to_special(family):
    assert preset_lineage("child") == ["elder", "parent", "child"]
    assert preset_lineage("elder") == ["elder"]


def test_inherited_values_say_where_they_stand(family):
    assert inherited_values("child") == {"training.epochs": (3, "parent"), "loss.name": ("softmax", "elder")}
    assert inherited_values("elder") == {}


def test_a_file_is_shown_as_it_is(family):
    assert preset_text("parent") == (family / "parent.toml").read_text()
    assert preset_names() == ["child", "elder", "parent"]


def test_an_unknown_preset_is_named_with_a_suggestion(family):
    with pytest.raises(UserError, match=r'no preset "chidl"\. Did you mean "child"\?'):
        load_preset("chidl")


def test_info_shows_what_is_inherited(family, capsys):
    assert main(["info", "--preset", "child"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(preset_text("child").splitlines())] == preset_text("child").splitlines()
    assert "# training.epochs = 3  (parent)" in lines
    assert '# loss.name = "softmax"  (elder)' in lines
    assert not any("training.seed" in line for line in lines)
