"""What is asked and what is answered, as the OpenAPI document tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .limits import DEFAULT_LIMITS as LIMITS


def _whole_characters(value: Any) -> Any:
    """JSON can say half of a surrogate pair; that is no text, and no file could hold it."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _whole_number(value: Any) -> Any:
    """To JSON 5.0 is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text = Annotated[str, BeforeValidator(_whole_characters), Field(max_length=LIMITS.text_chars)]
Name = Annotated[str, BeforeValidator(_whole_characters), Field(min_length=1, max_length=1000, pattern=r"\S")]
Count = Annotated[int, Field(strict=True, ge=1, le=LIMITS.top), BeforeValidator(_whole_number)]
Row = Annotated[int, Field(strict=True, ge=0, lt=2**31), BeforeValidator(_whole_number)]
Bucket = Literal["head", "torso", "tail"]


class Body(BaseModel):
    """A field that is not known is an error, not silence."""

    model_config = ConfigDict(extra="forbid")


class Question(Body):
    """Texts, and how many labels each of them may get."""

    texts: list[Text] = Field(max_length=LIMITS.texts, examples=[["wireless mouse with usb receiver"]])
    top: Count = 5
    min_score: float | None = Field(
        None, ge=-1000, le=1000, strict=True, description="leave out labels that score less"
    )
    without: list[Name] = Field([], max_length=LIMITS.top, description="uids of labels that are never given")
    details: bool = Field(False, strict=True, description="with each label's training queries and its bucket")
    probability: bool = Field(False, strict=True, description="how likely each label is right, where that was fitted")

    @model_validator(mode="after")
    def _not_too_many_answers(self) -> Question:
        if len(self.texts) * self.top > LIMITS.answers:
            raise ValueError(f"texts times top is at most {LIMITS.answers:,}")
        return self


class WhyQuestion(Body):
    """A text and one label, by its uid or its id."""

    text: Text = Field(examples=["wireless mouse with usb receiver"])
    uid: Name | None = None
    id: Row | None = Field(None, examples=[0])
    queries: Annotated[int, Field(strict=True, ge=0, le=50), BeforeValidator(_whole_number)] = 5
    words: bool = Field(True, strict=True, description="what each word does for the score")

    @model_validator(mode="after")
    def _one_label(self) -> WhyQuestion:
        if (self.uid is None) == (self.id is None):
            raise ValueError("name the label by uid or by id")
        return self


class NewLabel(Body):
    """A label that the model does not know yet. Without a uid its name stands in; without a text, too."""

    name: Name = Field(examples=["garden gnomes"])
    uid: Name | None = None
    text: Text | None = Field(None, description="what describes it, best in the words of the texts it belongs to")
    queries: list[Text] = Field([], max_length=100, description="a few texts that it belongs to")


class NewLabels(Body):
    labels: list[NewLabel] = Field(min_length=1, max_length=LIMITS.texts)
    save: bool = Field(False, strict=True, description="into the model directory, too; else until the server ends")


class OldLabels(Body):
    uids: list[Name] = Field(min_length=1, max_length=LIMITS.texts)
    save: bool = Field(False, strict=True, description="into the model directory, too; else until the server ends")


class Problem(BaseModel):
    """What every answer but a good one holds."""

    error: str


class PredictedLabel(BaseModel):
    label: str
    uid: str
    id: int
    score: float
    probability: float | None = None
    train_queries: int | None = None
    bucket: Bucket | None = None


class PredictedLabels(BaseModel):
    labels: list[PredictedLabel]


class Predictions(BaseModel):
    """One entry for each text, in their order, with its best labels first; a text without a word gets none."""

    results: list[PredictedLabels]


class Label(BaseModel):
    label: str
    uid: str
    id: int
    train_queries: int
    bucket: Bucket


class LabelPage(BaseModel):
    total: int
    labels: list[Label]


class LabelDetail(Label):
    text: str


class NearLabel(Label):
    score: float


class Neighbours(BaseModel):
    label: LabelDetail
    neighbours: list[NearLabel]


class Voice(BaseModel):
    """What speaks for the label in the model's mode. The shares add up to the score."""

    voice: Literal["prototype", "classifier", "memory", "lexical", "judge"]
    share: float


class Part(BaseModel):
    """One of the tokens that make the prototype. The shares add up to the prototype's."""

    part: Literal["text", "centroid", "free vector"]
    share: float
    without: float | None = Field(description="the prototype's share if the prototype had been made without this part")


class WordAdds(BaseModel):
    word: str
    adds: float


class WordChange(BaseModel):
    word: str
    change: float = Field(description="how much the score falls when the word is left out")


class WordVotes(BaseModel):
    """What the linear classifier on words says. With the bias, which a label has without any word, it is its share."""

    bias: float
    words: list[WordAdds]


class NearQueryAnswer(BaseModel):
    text: str
    score: float
    has_label: bool
    adds: float = Field(description="what its vote adds to the score")
    labels: list[str]


class Why(BaseModel):
    label: LabelDetail
    score: float
    voices: list[Voice]
    parts: list[Part]
    words: list[WordChange]
    lexical: WordVotes
    nearest: list[NearQueryAnswer]
    nearest_with_label: list[NearQueryAnswer]


class Changed(BaseModel):
    generation: int
    labels: list[Label]
    saved: bool


class Status(BaseModel):
    status: Literal["ok"]


class Generations(BaseModel):
    generation: int
