from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from primexmc.data.corpus import DataWarning
from primexmc.data.texts import Texts
from primexmc.data.tokens import RaggedTokens, tokenise
from primexmc.errors import UserError

TEXTS = ["red green", "", "blueish. red", "unknown  words", "a b c d e " * 30, " ", "Red", "é\u2028\U0001f600 red"]


def one_by_one(
    texts: list[str], tokenizer: Tokenizer, max_tokens: int, special: bool, prefix: str = ""
) -> list[list[int]]:
    """The whole text tokenised alone; then cut by hand, the last special token kept."""
    rows = []
    for text in texts:
        ids = tokenizer.encode(prefix + text, add_special_tokens=special).ids
        if len(ids) > max_tokens:
            ids = [*ids[: max_tokens - 1], ids[-1]] if special else ids[:max_tokens]
        rows.append(ids)
    return rows


def rows_of(tokens: RaggedTokens) -> list[list[int]]:
    return [tokens.ids_T[start:stop].tolist() for start, stop in itertools.pairwise(tokens.offsets)]


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("max_tokens", [3, 5, 64])
@pytest.mark.parametrize("prefix", ["", "query: "])
def test_as_one_by_one(tokenizer: Tokenizer, tmp_path: Path, special: bool, max_tokens: int, prefix: str) -> None:
    tokens = tokenise(TEXTS, tokenizer, max_tokens, prefix=prefix, add_special_tokens=special, cache_dir=tmp_path)
    expected = one_by_one(TEXTS, tokenizer, max_tokens, special, prefix)
    assert rows_of(tokens) == expected
    assert tokens.lengths.tolist() == [len(ids) for ids in expected]
    assert len(tokens) == len(TEXTS)
    assert tokens.ids_T.dtype == np.uint16


LONG = st.text(alphabet=list("abcde .\u00a0\u2028\tx"), max_size=400)


@pytest.mark.filterwarnings("ignore:.*cannot keep tokens there")
@given(st.lists(LONG, max_size=4), st.integers(3, 12), st.booleans())
def test_reading_only_the_beginning_of_long_texts_changes_nothing(
    texts: list[str], max_tokens: int, special: bool
) -> None:
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4, "ab": 5, "c": 6, ".": 7, "##c": 8}
    for splitter in (pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Metaspace(), pre_tokenizers.ByteLevel()):
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = splitter
        tokens = tokenise(texts, tokenizer, max_tokens, add_special_tokens=special, cache_dir=os.devnull)
        assert rows_of(tokens) == one_by_one(texts, tokenizer, max_tokens, False)


def test_large_vocabularies_have_larger_ids(tmp_path: Path) -> None:
    words = {f"w{number}": number for number in range(70_000)}
    tokenizer = Tokenizer(models.WordLevel({**words, "[UNK]": 70_000}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokens = tokenise(["w69999 w1", "w65536"], tokenizer, 8, cache_dir=tmp_path)
    assert rows_of(tokens) == [[69_999, 1], [65_536]]
    assert tokens.ids_T.dtype == np.int32


def test_the_callers_tokenizer_is_left_alone(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.enable_padding(length=100)
    before = tokenizer.to_str()
    assert rows_of(tokenise(["red"], tokenizer, 8, cache_dir=tmp_path)) == [[2, 4, 3]]
    assert tokenizer.to_str() == before


def test_no_room_for_text(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="2 tokens a text leave no room beside 2 special tokens"):
        tokenise(["red"], tokenizer, 2, cache_dir=tmp_path)


def test_no_texts(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for _ in range(2):
        tokens = tokenise([], tokenizer, 8, cache_dir=tmp_path)
        assert len(tokens) == 0
        assert [part.tolist() for part in tokens.take(np.array([], dtype=np.int64))] == [[], [0]]


def test_only_empty_texts(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for _ in range(2):
        tokens = tokenise(["", ""], tokenizer, 8, add_special_tokens=False, cache_dir=tmp_path)
        assert [part.tolist() for part in tokens.take(np.array([1, 0, 1]))] == [[], [0, 0, 0, 0]]


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6), st.lists(st.integers(0, 99), max_size=9)
)
def test_take(rows: list[list[int]], numbers: list[int]) -> None:
    offsets = np.cumsum([0, *map(len, rows)])
    tokens = RaggedTokens(np.array([id for row in rows for id in row], dtype=np.uint16), offsets)
    chosen = [number % len(rows) for number in numbers]
    ids, taken = tokens.take(np.array(chosen, dtype=np.int64))
    assert ids.dtype == taken.dtype == np.int64
    assert [ids[start:stop].tolist() for start, stop in itertools.pairwise(taken)] == [rows[row] for row in chosen]


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "tokens").iterdir())


def forbid_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(*_: object) -> list[list[int]]:
        raise AssertionError("tokenised again")

    monkeypatch.setattr("primexmc.data.cutter.Cutter.encode", encode)


def test_the_second_time_is_read(tokenizer: Tokenizer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rows_of(tokenise(TEXTS, tokenizer, 5, cache_dir=cache))
    forbid_encoding(monkeypatch)
    again = tokenise(Texts.of(TEXTS), tokenizer, 5, cache_dir=cache)
    assert rows_of(again) == first
    assert not again.ids_T.flags.writeable
    assert len(entries(cache)) == 1


def test_whatever_matters_makes_another_entry(tokenizer: Tokenizer, cache: Path) -> None:
    tokenise(["red", "green"], tokenizer, 5, cache_dir=cache)
    tokenise(["redg", "reen"], tokenizer, 5, cache_dir=cache)
    tokenise(["red", "green"], tokenizer, 6, cache_dir=cache)
    tokenise(["red", "green"], tokenizer, 5, prefix="a ", cache_dir=cache)
    tokenise(["red", "green"], tokenizer, 5, add_special_tokens=False, cache_dir=cache)
    tokenizer.add_tokens(["purple"])
    tokenise(["red", "green"], tokenizer, 5, cache_dir=cache)
    assert len(entries(cache)) == 6


def test_places_of_the_cache(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMEXMC_CACHE", str(tmp_path / "chosen"))
    tokenise(["red"], tokenizer, 5)
    assert len(entries(tmp_path / "chosen")) == 1
    monkeypatch.delenv("PRIMEXMC_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tokenise(["red"], tokenizer, 5)
    assert len(entries(tmp_path / "home" / ".cache" / "primexmc")) == 1


def damage_ids(entry: Path) -> None:
    raw = bytearray((entry / "ids.bin").read_bytes())
    raw[4] ^= 1
    (entry / "ids.bin").write_bytes(raw)


def shorten_ids(entry: Path) -> None:
    (entry / "ids.bin").write_bytes((entry / "ids.bin").read_bytes()[:-3])


def empty_offsets(entry: Path) -> None:
    (entry / "offsets.bin").write_bytes(b"")


def break_meta(entry: Path) -> None:
    (entry / "meta.json").write_text("{")


def list_as_meta(entry: Path) -> None:
    (entry / "meta.json").write_text("[]")


def lose_meta(entry: Path) -> None:
    (entry / "meta.json").unlink()


def become_a_file(entry: Path) -> None:
    for path in entry.iterdir():
        path.unlink()
    entry.rmdir()
    entry.write_text("what")


@pytest.mark.parametrize(
    "damage", [damage_ids, shorten_ids, empty_offsets, break_meta, list_as_meta, lose_meta, become_a_file]
)
def test_a_damaged_entry_is_built_again(tokenizer: Tokenizer, cache: Path, damage: object) -> None:
    expected = rows_of(tokenise(TEXTS, tokenizer, 5, cache_dir=cache))
    (entry,) = entries(cache)
    assert callable(damage)
    damage(entry)
    assert rows_of(tokenise(TEXTS, tokenizer, 5, cache_dir=cache)) == expected
    assert entries(cache) == [entry]
    assert json.loads((entry / "meta.json").read_text())["version"] == 1


def test_a_cache_that_cannot_be_written_is_said_once(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(DataWarning, match="cannot keep tokens there .* PRIMEXMC_CACHE") as caught:
        tokens = tokenise(TEXTS, tokenizer, 5, cache_dir=tmp_path / "file")
    assert len(caught) == 1
    assert rows_of(tokens) == one_by_one(TEXTS, tokenizer, 5, True)


def test_a_disk_that_is_full(tokenizer: Tokenizer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.warns(DataWarning, match="No space left on device"):
        tokens = tokenise(TEXTS, tokenizer, 5, cache_dir=cache)
    assert rows_of(tokens) == one_by_one(TEXTS, tokenizer, 5, True)
    assert entries(cache) == []


def test_nothing_half_written_stays_when_it_is_interrupted(
    tokenizer: Tokenizer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> list[list[int]]:
        raise KeyboardInterrupt

    monkeypatch.setattr("primexmc.data.cutter.Cutter.encode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tokenise(TEXTS, tokenizer, 5, cache_dir=cache)
    assert entries(cache) == []


def build(recipe: str, cache: str, start: float, results: multiprocessing.Queue[list[list[int]]]) -> None:
    time.sleep(max(0.0, start - time.time()))
    results.put(rows_of(tokenise(TEXTS * 500, Tokenizer.from_str(recipe), 5, cache_dir=cache)))


def test_processes_that_build_the_same_at_once(tokenizer: Tokenizer, cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[list[list[int]]] = context.Queue()
    arguments = (tokenizer.to_str(), str(cache), time.time() + 3, results)
    processes = [context.Process(target=build, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    expected = one_by_one(TEXTS, tokenizer, 5, True) * 500
    assert found == [expected, expected]
    assert len(entries(cache)) == 1
