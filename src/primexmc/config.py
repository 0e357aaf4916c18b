"""Every setting of primexmc: frozen sections, checked once, the same for presets, TOML files, `--set` and Python.

Only the standard library is needed here, so that settings can be read wherever torch runs.
"""

from __future__ import annotations

import dataclasses
import json
import math
import tomllib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .errors import UserError, did_you_mean
from .own_code import is_own


def setting(default: Any, help: str, *, low: float | None = None, high: float | None = None) -> Any:
    """A field with the sentence that explains it and, for numbers, the range that makes sense."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


def part(*names: str, help: str) -> Any:
    """A part by name, the first is the default; or one of the user's own, "module:name" (docs/adding-a-method.md)."""
    return field(default=names[0], metadata={"help": help, "choices": names})


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """How raw files are read and cut into tokens."""

    text_column: str = setting("text", "column of the query text in CSV, TSV, JSONL and Parquet files")
    labels_column: str = setting("labels", "column of the labels")
    separator: str = setting("auto", 'what separates labels within a cell: "auto", "|" or ";", or any other string')
    fields: Literal["title+content", "title"] = setting(
        "title+content", "what of an LF line is read; LF-AmazonTitles and LF-WikiTitles are the titles of fuller files"
    )
    query_tokens: int = setting(64, "queries are cut after so many tokens", low=1)
    label_tokens: int = setting(32, "label texts are cut after so many tokens", low=1)
    validation_fraction: float = setting(
        0.05, "share of train held out, by hash of uid, when there is no val split", low=0, high=0.5
    )
    validation_max: int = setting(5000, "the held-out part is never larger than this", low=0)
    propensity_a: float = setting(0.55, "A of the propensity model (Jain et al. 2016), for sampling and for metrics")
    propensity_b: float = setting(1.5, "B of the propensity model", low=0)


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """The text encoder that queries and labels share."""

    name: str = setting("static", '"static" (embedded, no download), a directory, or a Hugging Face name')
    pooling: str = part("mean", "cls", help="how token vectors become one vector")
    dropout: float = setting(-1.0, "dropout inside the encoder; -1 keeps the encoder's own", low=-1, high=0.95)
    packed: Literal["auto", "on", "off"] = setting(
        "auto", "BERT-like encoders read texts laid end to end, without padding: where they can (auto, on) or nowhere"
    )
    query_prefix: str = setting("", 'put before every query ("query: " for E5)')
    label_prefix: str = setting("", "put before every label text")


@dataclass(frozen=True, kw_only=True)
class PrototypeSettings:
    """The Label Prototype Network: label text + centroid + free vector -> prototype."""

    enabled: bool = setting(True, "false compares queries with label texts alone (NGAME)")
    combine: str = part("network", "sum", help="how the tokens become one vector: attention, or their sum (DEXA)")
    centroid: bool = setting(True, "use the centroid token")
    free_vector: bool = setting(True, "use the free-vector token")
    num_free_vectors: int = setting(65_536, "F, capped at the number of labels", low=1)
    heads: int = setting(1, "attention heads", low=1)
    width: int = setting(1024, "width of the feed-forward layer", low=1)
    dropout: float = setting(0.1, "dropout inside the network", low=0, high=0.95)
    normalise_text: bool = setting(False, "let the label text enter with length 1")
    centroid_mode: Literal["epoch", "ema", "start"] = setting(
        "epoch", "exact mean at each refresh, moving average after each step, or as the untrained encoder sees them"
    )
    mixed: bool = setting(
        True,
        "finished prototypes are weighted means of the network's, the label's text and its centroid; the weights are "
        "chosen on validation, none included",
    )
    exact_centroids: bool = setting(True, "exact means for the finished model; false keeps those of training")
    ema_decay: float = setting(0.95, "alpha of the moving average", low=0, high=1)
    drop_centroid: float = setting(
        0.1, "chance that a label goes without its centroid in a training step", low=0, high=1
    )
    drop_free_vector: float = setting(
        0.1, "chance that a label goes without its free vector in a training step", low=0, high=1
    )


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """Which queries meet which labels."""

    positives_per_query: int = setting(2, "labels drawn per query and step", low=1)
    positives: str = part("propensity", "uniform", help="draw rare labels more often, or all alike")
    negatives: str = part(
        "batch", "pool", "all", "mined",
        help="labels that a batch meets besides the drawn ones: none, random ones, all, or the nearest wrong ones",
    )  # fmt: skip
    pool_size: int = setting(4096, "random labels in every batch (negatives = pool)", low=1)
    mined_per_query: int = setting(1, "near wrong labels that each query brings (negatives = mined)", low=1)
    mined_depth: int = setting(100, "of so many nearest wrong labels they are drawn", low=1)
    mining: float = setting(0.1, "share of training between exact searches for them; at least an epoch", low=0, high=1)
    batches: str = part("ngame", "random", help="similar queries together, or at random")
    queries_per_label: int = setting(
        0,
        "more training queries of each batch label, encoded for its moving centroid alone (centroid_mode = ema)",
        low=0,
    )
    smallest_cluster: int = setting(4, "cluster size after the first refresh", low=1)
    largest_cluster: int = setting(1024, "cluster size at the end", low=1)
    growth: tuple[float, ...] = setting(
        (1 / 30, 1 / 12, 1 / 6, 1 / 4, 1 / 3, 5 / 12, 1 / 2, 2 / 3),
        "shares of training after which the cluster size doubles",
    )
    refresh: float = setting(
        1 / 60, "share of training between refreshes of clusters and centroids; at least an epoch", low=0, high=1
    )


@dataclass(frozen=True, kw_only=True)
class LossSettings:
    """What training makes small."""

    name: str = part(
        "margin", "softmax", "contrastive",
        help="dynamic margin (the paper), decoupled softmax, or softmax with one positive",
    )  # fmt: skip
    prototype_weight: float = setting(1.0, "weight of query -> prototype", low=0)
    text_weight: float = setting(1.0, "weight of query -> label text", low=0)
    reverse_weight: float = setting(1.0, "weight of label text -> query", low=0)
    regulariser_weight: float = setting(0.1, "lambda: prototypes must beat label texts (margin loss only)", low=0)
    regulariser_margin: float = setting(0.1, "m' of the regulariser", low=0)
    margin_min: float = setting(0.1, "gamma_min", low=0)
    margin_max: float = setting(0.3, "gamma_max", low=0)
    margin_form: Literal["max", "inverted"] = setting("max", "max(m - d, 0), or the printed Eq. 3 (an ablation)")
    detach_margin: bool = setting(True, "no gradient through the margin (false is an ablation)")
    tie_gradient: float = setting(0.5, "share of the gradient that passes where the hinge is exactly 0", low=0, high=1)
    num_negatives: int = setting(100, "hardest negatives of the batch that count", low=1)
    softmax_tau: float = setting(0.1, "temperature of the weights over violating negatives; 0 weighs them alike", low=0)
    temperature: float = setting(0.05, "temperature of both softmax losses", low=1e-6)


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The loop."""

    epochs: int = setting(20, "passes over the training queries", low=1)
    batch_size: int = setting(1600, "queries per step", low=1)
    learning_rate: float = setting(2e-4, "peak learning rate of the encoder", low=0)
    prototype_learning_rate: float = setting(5e-4, "peak learning rate of prototype network and free vectors", low=0)
    weight_decay: float = setting(0.01, "AdamW's, except on biases, norms and free vectors", low=0)
    adam_eps: float = setting(1e-6, "AdamW's epsilon", low=0)
    texts_at_once: int = setting(
        0, "texts of a step that the encoder keeps in memory at once, encoding all twice for it; 0 keeps all", low=0
    )
    warmup_steps: int = setting(100, "steps of linear warm-up; then linear to zero", low=0)
    seed: int = setting(0, "same seed, same machine: same run", low=0)
    validate_every: int = setting(1, "epochs between validations; 0 never validates and keeps the last epoch", low=0)
    replay: bool = setting(
        False, "with --from: train on what the model remembers, too, so that the data may hold only what is new"
    )
    refit: bool = setting(False, "afterwards train again on train + validation for the epochs that were best")
    checkpoint_every_s: float = setting(60.0, "seconds between checkpoints", low=0)
    device: str = setting("auto", '"auto", "cpu", "cuda" or "cuda:1"')
    precision: Literal["auto", "fp32", "bf16"] = setting("auto", "bf16 on GPU and fp32 on CPU unless said")
    threads: int = setting(0, "CPU threads; 0 takes all cores", low=0)


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings:
    """W: a vector for each label, trained on queries' finished embeddings; it begins with the prototypes."""

    enabled: bool = setting(False, "train it when the encoder is done, for the modes W, theta+W, W+memory and all")
    labels: Literal["sampled", "all"] = setting(
        "sampled", "what a query is compared with: the labels drawn for its batch (margin), or every label (softmax)"
    )
    epochs: int = setting(10, "passes over the training queries", low=1)
    batch_size: int = setting(2048, "queries per step", low=1)
    learning_rate: float = setting(3e-3, "Adam's, falling to zero in a line", low=0)
    dropout: float = setting(0.0, "share of a query's numbers that are left out in a step", low=0, high=0.95)
    positives_per_query: int = setting(5, "labels drawn per query and step (labels = sampled)", low=1)
    margin: float = setting(0.2, "by which right labels must be ahead (labels = sampled)", low=0)
    temperature: float = setting(0.05, "of the softmax (labels = all)", low=1e-6)


@dataclass(frozen=True, kw_only=True)
class FusionSettings:
    """What speaks for a label beside its prototype; how much it counts is chosen on validation."""

    memory: bool = setting(True, "the labels of the nearest training queries")
    neighbours: int = setting(100, "so many training queries", low=1)
    lexical: bool = setting(True, "a linear classifier on words")
    lexical_negatives: int = setting(40, "wrong labels that a query teaches it to avoid", low=1)
    lexical_strength: float = setting(1.0, "how much a mistake costs the classifier, next to large weights", low=1e-6)
    lexical_iterations: int = setting(20, "steps of its fit", low=1)
    judge: bool = setting(
        True, "in mode all a small network, fitted on validation, corrects the sum of the voices where that helps"
    )
    candidates: int = setting(200, "labels nearest by prototype that are judged", low=1)


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """From a query's vector to labels."""

    mode: Literal["auto", "theta", "memory", "lexical", "W", "theta+W", "W+memory", "all"] = setting(
        "auto",
        'what predicts: prototypes ("theta"), also memory or words, the classifier ("W") alone or with another, "all", '
        "or what was best on validation",
    )
    top: int = setting(100, "labels retrieved per query in evaluation", low=1)
    batch_size: int = setting(1024, "queries searched together", low=1)
    encoder: Literal["auto", "fp32", "int8"] = setting(
        "auto",
        "how a transformer predicts on a CPU: int8 takes half the time; auto takes it where that costs less than 0.2 "
        "points of P@1 on validation",
    )
    precision: Literal["auto", "fp32", "bf16", "int8"] = setting(
        "auto", "what exact search makes its first products in; all of them find the same labels"
    )
    backend: Literal["auto", "exact", "faiss", "milvus"] = setting(
        "auto", "what `primexmc index` builds; auto: exact below 200,000 labels, then faiss"
    )
    faiss: Literal["hnsw", "hnsw-8bit", "ivf", "ivf-8bit"] = setting(
        "hnsw-8bit", "faiss' index: a graph, or lists around cluster centres; 8bit takes a quarter of the memory"
    )
    recall: float = setting(0.98, "share of the best 100 labels that an index is tuned to find", low=0, high=1)
    min_recall: float = setting(0.95, "an index that finds less is neither written nor used", low=0, high=1)
    milvus_uri: str = setting("", "address of a Milvus server or cluster; empty: embedded, in the model's directory")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All sections. `Settings()` is the paper's method with our defaults."""

    data: DataSettings = DataSettings()
    encoder: EncoderSettings = EncoderSettings()
    prototypes: PrototypeSettings = PrototypeSettings()
    sampling: SamplingSettings = SamplingSettings()
    loss: LossSettings = LossSettings()
    training: TrainingSettings = TrainingSettings()
    classifier: ClassifierSettings = ClassifierSettings()
    fusion: FusionSettings = FusionSettings()
    search: SearchSettings = SearchSettings()

    def with_values(self, values: Mapping[str, Any], source: str) -> Settings:
        """A copy with `{"training.epochs": 3}` or `{"training": {"epochs": 3}}` put in; `source` names it in errors."""
        sections: dict[str, dict[str, Any]] = {}
        for key, value in flatten(values):
            section, name, expected = _find(key, source)
            sections.setdefault(section, {})[name] = _checked(key, value, expected, source)
        changed = {name: dataclasses.replace(getattr(self, name), **fields) for name, fields in sections.items()}
        settings = dataclasses.replace(self, **changed)
        _check_together(settings, source)
        return settings

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Plain nested values, ready for JSON or TOML."""
        return {
            section: {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
            for section, fields in dataclasses.asdict(self).items()
        }

    def unlike_defaults(self) -> dict[str, Any]:
        """`{"training.epochs": 30, ...}`: what is not as `Settings()` has it."""
        default = dict(flatten(Settings().to_dict()))
        return {key: value for key, value in flatten(self.to_dict()) if value != default[key]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str) -> Settings:
        """The inverse of `to_dict`; what is missing keeps its default."""
        return cls().with_values(values, source)


def all_settings() -> dict[str, dataclasses.Field[Any]]:
    """`{"training.epochs": field, ...}` in the order of the file."""
    return {
        f"{section.name}.{entry.name}": entry
        for section in dataclasses.fields(Settings)
        for entry in dataclasses.fields(type(section.default))  # type: ignore[arg-type]
    }


def read_toml(path: Path) -> dict[str, Any]:
    """A settings file as nested values."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such settings file; expected a TOML file with sections like [training].") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: not a TOML file ({error}); expected sections like [training] with lines like epochs = 3."
        ) from None


def parse_overrides(assignments: Iterable[str]) -> dict[str, Any]:
    """`["training.epochs=3"]` as values: JSON where it parses (3, true, [0.1]), else the text itself."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise UserError(f'--set {assignment}: expected section.key=value, for example "training.epochs=3".')
        try:
            values[key.strip()] = json.loads(text)
        except json.JSONDecodeError:
            values[key.strip()] = text
    return values


def flatten(values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Nested or dotted values as (dotted key, value) pairs."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def _find(key: str, source: str) -> tuple[str, str, Any]:
    known = all_settings()
    if key not in known:
        hint = did_you_mean(key, known)
        raise UserError(f'{source}: unknown setting "{key}".{hint} `primexmc info --settings` lists all of them.')
    section, name = key.split(".")
    section_type = type(getattr(Settings(), section))
    return section, name, typing.get_type_hints(section_type)[name]


def _checked(key: str, value: Any, expected: Any, source: str) -> Any:
    """The value in its field's type, or a sentence that says what fits."""
    origin = typing.get_origin(expected)
    replaceable = all_settings()[key].metadata.get("choices")
    choices = replaceable or (typing.get_args(expected) if origin is Literal else ())
    if choices:
        if value not in choices and not (replaceable and is_own(value)):
            hint = did_you_mean(str(value), map(str, choices))
            raise UserError(f'{source}: {key} is one of {", ".join(map(str, choices))}, not "{value}".{hint}')
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)) or not all(_is_number(entry) for entry in value):
            raise UserError(f"{source}: {key} is a list of numbers like [0.1, 0.5], not {value!r}.")
        return tuple(float(entry) for entry in value)
    if expected is str:
        value = str(value) if _is_number(value) else value
    elif expected is float and _is_number(value):
        value = float(value)
    elif expected is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not expected:
        kind = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[expected]
        raise UserError(f"{source}: {key} is {kind}, not {value!r}.")
    _check_range(key, value, source)
    return value


def _check_range(key: str, value: Any, source: str) -> None:
    if not _is_number(value):
        return
    bounds = all_settings()[key].metadata
    low, high = bounds.get("low"), bounds.get("high")
    if not math.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
        wanted = f"between {low} and {high}" if high is not None else f"at least {low}" if low is not None else "finite"
        raise UserError(f"{source}: {key} is {wanted}, not {value}.")


def _check_together(settings: Settings, source: str) -> None:
    loss, sampling = settings.loss, settings.sampling
    if loss.margin_min > loss.margin_max:
        raise UserError(f"{source}: loss.margin_min ({loss.margin_min}) is above loss.margin_max ({loss.margin_max}).")
    if sampling.smallest_cluster > sampling.largest_cluster:
        raise UserError(
            f"{source}: sampling.smallest_cluster ({sampling.smallest_cluster}) is above "
            f"sampling.largest_cluster ({sampling.largest_cluster})."
        )
    if settings.search.mode in ("W", "theta+W", "W+memory") and not settings.classifier.enabled:
        raise UserError(
            f"{source}: search.mode={settings.search.mode} needs a classifier; set classifier.enabled=true."
        )
    if sampling.queries_per_label and settings.prototypes.centroid_mode != "ema":
        raise UserError(
            f"{source}: sampling.queries_per_label is for moving averages; set prototypes.centroid_mode=ema."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
