"""field.json: whole at any time, one row a key, also when several write."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from primexmc.compare.field import Field
from primexmc.errors import UserError


def test_rows_come_back_in_order_and_a_key_once(tmp_path):
    field = Field(tmp_path / "deep" / "out")
    assert field.rows() == [] and field.find("a") is None
    for row in ({"key": "a", "P@1": 1.0}, {"key": "b", "P@1": 2.0}, {"key": "a", "P@1": 3.0}):
        field.add(row)
    assert field.rows() == [{"key": "b", "P@1": 2.0}, {"key": "a", "P@1": 3.0}]
    assert Field(tmp_path / "deep" / "out").find("a") == {"key": "a", "P@1": 3.0}
    assert [path.name for path in (tmp_path / "deep" / "out").iterdir()] == ["field.json"]


def test_writers_side_by_side_lose_nothing(tmp_path):
    fields = [Field(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: fields[number % 4].add({"key": str(number)}), range(40)))
    assert sorted(int(row["key"]) for row in Field(tmp_path).rows()) == list(range(40))


@pytest.mark.parametrize("content", ["[{", '{"key": 1}', "[1, 2]"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "field.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"field\.json"):
        Field(tmp_path)


def test_a_row_a_line(tmp_path):
    field = Field(tmp_path)
    field.add({"key": "a", "method": "größe"})
    field.add({"key": "b"})
    lines = (tmp_path / "field.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.rstrip(",")) for line in lines[1:-1]] == [{"key": "a", "method": "größe"}, {"key": "b"}]
