"""What becomes of errors, warnings and interruptions that a verb raises."""

from __future__ import annotations

import warnings

import pytest

from primexmc.cli import main
from primexmc.data.corpus import DataWarning
from primexmc.errors import UserError


@pytest.fixture
def verb(monkeypatch):
    """Puts a function in the place of `primexmc demo`."""

    def put(act):
        monkeypatch.setattr("primexmc.cli.demo.run", lambda _: act() or 0)

    return put


def fail(error):
    def act():
        raise error

    return act


class OutOfMemoryError(RuntimeError):
    """Called as torch's."""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("x.csv, line 3: wrong."), 2, "primexmc: error: x.csv, line 3: wrong.\n"),
        (OSError(28, "No space left on device", "a/b"), 2, "primexmc: error: a/b: No space left on device.\n"),
        (OSError("odd"), 2, "primexmc: error: odd.\n"),
        (KeyboardInterrupt(), 130, "primexmc: stopped.\n"),
        (KeyboardInterrupt("stopped after step 3."), 130, "primexmc: stopped after step 3.\n"),
        (OutOfMemoryError("CUDA"), 2, "primexmc: error: the GPU's memory is full; "),
    ],
)
def test_errors_become_a_sentence_and_a_code(verb, capsys, error, code, said):
    verb(fail(error))
    assert main(["demo"]) == code
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("a bug"), AssertionError("a bug")])
def test_mistakes_of_ours_keep_their_traceback(verb, error):
    verb(fail(error))
    with pytest.raises(type(error), match="a bug"):
        main(["demo"])


def test_warnings_of_ours_are_notes_and_others_are_silent(verb, capsys):
    def warn():
        warnings.warn("x.csv: 3 rows are odd.", DataWarning, stacklevel=1)
        warnings.warn("this will go away", DeprecationWarning, stacklevel=1)
        warnings.warn("somebody else's", UserWarning, stacklevel=1)

    verb(warn)
    before = warnings.showwarning
    assert main(["demo"]) == 0
    assert capsys.readouterr().err == "primexmc: note: x.csv: 3 rows are odd.\n"
    assert warnings.showwarning is before
