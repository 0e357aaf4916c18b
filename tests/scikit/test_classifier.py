"""PrimeClassifier in scikit-learn's hands: its checks where they apply to texts, pipelines, searches, both forms of y.

scikit-learn's `check_estimator` runs one check on an estimator whose input is no table of numbers, and says so. Run
here, beside it: every check that fits nothing. Not run, because they fit on tables of numbers: all others; what they
ask (fit changes no parameter, gives itself, forgets the fit before, can be pickled, complains when it is not fitted) is
asked here with texts. Without sense for texts: sparse input, sample weights, partial fits, names of features, NaN.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from training.cases import QUICK as TINY
from training.cases import make_corpus

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

from primexmc.errors import UserError  # noqa: E402
from primexmc.sklearn import PrimeClassifier  # noqa: E402
from primexmc.sklearn.targets import places, read_targets  # noqa: E402

CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
]
QUICK = TINY | {"training.epochs": 2}


def quick(**more):
    return PrimeClassifier(**({"preset": "static-cpu", "settings": QUICK, "device": "cpu", "threshold": None} | more))


def data(size=150):
    """Texts, and lists of the names of things in them."""
    split = make_corpus(size).split("train")
    names = make_corpus(size).labels.names
    rows = np.split(split.positives.indices, split.positives.indptr[1:-1])
    return list(split.texts), [[names[label] for label in row] for row in rows]


@pytest.fixture(scope="module")
def fitted(tiny_static):
    texts, y = data()
    return quick().fit(texts, y)


@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_scikit_learn(name):
    if hasattr(estimator_checks, name):
        getattr(estimator_checks, name)("PrimeClassifier", PrimeClassifier())


@pytest.mark.filterwarnings("ignore")
def test_check_estimator_itself():
    estimator_checks.check_estimator(quick())


def test_fitting_changes_no_parameter_and_what_is_fitted_can_be_pickled(fitted):
    texts, _ = data(20)
    assert fitted.get_params() == quick().get_params()
    other = pickle.loads(pickle.dumps(fitted))
    assert other.predict(texts) == fitted.predict(texts)
    assert clone(fitted).get_params() == fitted.get_params() and not hasattr(clone(fitted), "model_")


def test_a_second_fit_forgets_the_first(fitted):
    texts, y = data()
    once_more = clone(fitted)
    assert once_more.fit(texts[:40], [["a", "b"]] * 40) is once_more
    assert once_more.classes_.tolist() == ["a", "b"]
    assert once_more.fit(texts, y).predict(texts[:20]) == fitted.predict(texts[:20])


@pytest.mark.parametrize("method", ["predict", "predict_top", "predict_proba", "decision_function"])
def test_unfitted_it_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(quick(), method)(["a boat"])
    with pytest.raises(NotFittedError):
        quick().score(["a boat"], [["boat"]])


def test_both_forms_of_y_give_the_same_model(fitted):
    texts, y = data()
    binarizer = MultiLabelBinarizer().fit(y)
    assert binarizer.classes_.tolist() == fitted.classes_.tolist()
    expected = binarizer.transform(fitted.predict(texts))
    names = list(binarizer.classes_)
    dense = quick(label_texts=names).fit(texts, binarizer.transform(y))
    sparse = quick(label_texts=names).fit(np.array(texts, dtype=object), csr_matrix(binarizer.transform(y)))
    assert np.array_equal(dense.predict(texts), expected) and dense.classes_.tolist() == list(range(len(names)))
    assert issparse(sparse.predict(texts)) and np.array_equal(sparse.predict(texts).toarray(), expected)
    scores = [fitted.score(texts, y), dense.score(texts, binarizer.transform(y))]
    assert scores[0] == scores[1]


def test_one_label_a_text_whatever_its_kind():
    texts, y = data()
    first = [sorted(row)[0] if row else "none" for row in y]
    found = quick().fit(texts, first)
    assert found.predict(texts).shape == (len(texts),) and set(found.predict(texts)) <= set(first)
    numbers = np.array([sorted(set(first)).index(label) for label in first])
    again = quick(label_texts=sorted(set(first))).fit(texts, numbers)
    assert [sorted(set(first))[number] for number in again.predict(texts)] == found.predict(texts).tolist()
    assert again.score(texts, numbers) == pytest.approx((again.predict(texts) == numbers).mean())


def test_score_against_loops(fitted):
    texts, y = data()
    best = [row[0][0] for row in fitted.predict_top(texts, 1)]
    right = sum(label in truth for label, truth in zip(best, y, strict=True))
    assert fitted.score(texts, y) == pytest.approx(right / len(texts))
    strange = [["never seen"] for _ in texts]
    assert fitted.score(texts, strange) == 0
    assert clone_with(fitted, metric="R@100").score(texts, y) == 1, "there are fewer labels than that"


def test_scores_and_probabilities(fitted):
    texts, _ = data(30)
    scores, p = fitted.decision_function(texts), fitted.predict_proba(texts)
    assert scores.shape == p.shape == (30, len(fitted.classes_))
    top = fitted.predict_top(texts, 3)
    for row, found in enumerate(top):
        assert [label for label, _ in found] == [fitted.classes_[n] for n in np.argsort(-scores[row])[:3]]
        assert [score for _, score in found] == pytest.approx(np.sort(scores[row])[::-1][:3].tolist(), abs=1e-6)
        assert p[[row]].nnz == 5 and 0 < p[row, np.argmax(scores[row])] <= 1
    half = clone_with(fitted, threshold=0.5)
    for row, found in enumerate(half.predict(texts)):
        assert set(found) == {fitted.classes_[n] for n in np.flatnonzero(p[[row]].toarray()[0] >= 0.5)}


def test_in_a_pipeline_in_cross_validation_and_in_a_search():
    texts, y = data(120)
    shout = FunctionTransformer(lambda X: [text.lower() for text in X])
    pipeline = make_pipeline(shout, quick())
    scores = cross_val_score(pipeline, [text.upper() for text in texts], y, cv=3, error_score="raise")
    assert scores.shape == (3,) and (scores > 1.5 / len(read_targets(y).classes)).all(), "better than guessing"
    grid = {"settings": [QUICK | {"training.epochs": epochs} for epochs in (1, 3)]}
    search = GridSearchCV(quick(), grid, cv=KFold(2), error_score="raise")
    search.fit(np.array(texts, dtype=object), MultiLabelBinarizer().fit_transform(y))
    assert search.best_params_ in [{"settings": settings} for settings in grid["settings"]]
    assert search.predict(["a boat"]).shape == (1, len(read_targets(y).classes))


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        ("a text", [["a"]], "a list of texts"),
        (["a text", 3], [["a"], ["b"]], r"X\[1\] is 3; expected a text"),
        (["a text"], [["a"], ["b"]], "X has 1 texts and y has 2 rows"),
        ([], [], "X has 0 texts and y 0 labels"),
        (["a text"], [[]], "X has 1 texts and y 0 labels"),
        (["a text"], None, "y is missing"),
        (["a", "b"], [["a"], "b"], r"y\[1\] is unlike y\[0\]"),
        (["a", "b"], [["a"], [3]], "labels of different kinds, texts and others"),
        (["a", "b"], np.array([[0, 2], [1, 0]]), "other values than 0 and 1"),
    ],
)
def test_what_cannot_be_fitted(X, y, sentence):
    with pytest.raises(UserError, match=sentence):
        quick().fit(X, y)


def test_what_cannot_be_scored(fitted):
    texts, y = data(10)
    with pytest.raises(UserError, match=r'metric is one of .* not "P@2"'):
        clone_with(fitted, metric="P@2").score(texts, y)
    with pytest.raises(UserError, match="top is at least 1"):
        clone_with(fitted, top=0).predict(texts)
    with pytest.raises(UserError, match="label_texts has 1 texts, but y has 2 labels"):
        quick(label_texts=["x"]).fit(["a", "b"], [["a"], ["b"]])
    with pytest.raises(UserError, match="3 columns"):
        places(np.eye(2), read_targets(np.eye(3)))


def clone_with(fitted, **params):
    made = clone(fitted).set_params(**params)
    made.model_, made.targets_, made.classes_ = fitted.model_, fitted.targets_, fitted.classes_
    return made


def test_other_labels_get_places_behind_those_of_fit():
    targets = read_targets([["b"], ["a", "c"]])
    assert targets.classes.tolist() == ["a", "b", "c"] and targets.rows == [[1], [0, 2]]
    assert places([["c", "z"], ["y"], ["z"]], targets) == [[2, 4], [3], [4]]
