"""A case: a question or a whole conversation, and what has to be true of it; as a file in ``evals/`` says it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from dualtrack.output_schema import matcher
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dualtrack_stack.profiles import checkable

MOST_CASES = 1_000
"""Of a file."""


def _listed(value: Any) -> Any:
    """One value stands for a list of it."""
    return [value] if isinstance(value, (str, dict)) else value


def _pattern(text: str) -> str:
    if matcher(text) is None:
        raise ValueError("this is no regular expression that is matched in linear time (no look-around)")
    return text


class Part(BaseModel):
    """A table of the file: nothing but its fields."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class WantedCall(Part):
    """A call of ``tool`` whose input has at least these fields with these values."""

    tool: str
    input: dict[str, Any] = {}


class GivenResult(WantedCall):
    """What a call of the tool returns in place of running it; the first that fits the call's input is taken."""

    text: str
    is_error: bool = False


Texts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_listed)]


def _as_call(value: Any) -> Any:
    return {"tool": value} if isinstance(value, str) else value


class Checks(Part):
    """What has to be true; what is not written is not checked, but that the chat is done."""

    contains: Texts = []
    """Texts that the answer has, whatever their case."""
    lacks: Texts = []
    matches: Annotated[list[Annotated[str, AfterValidator(_pattern)]], BeforeValidator(_listed)] = []
    calls: Annotated[list[Annotated[WantedCall, BeforeValidator(_as_call)]], BeforeValidator(_listed)] = []
    never_calls: Texts = []
    schema_: Annotated[Annotated[dict[str, Any], AfterValidator(checkable)] | None, Field(alias="schema")] = (
        None
    )
    """The JSON Schema that the answer is asked to fit."""
    status: Literal["done", "failed", "paused"] = "done"
    judge: str = ""
    """A rubric, by which a model judges the answer."""
    most_credits: Annotated[int | None, Field(ge=0)] = None
    most_dollars: Annotated[float | None, Field(ge=0)] = None
    most_turns: Annotated[int | None, Field(ge=1)] = None
    """Model calls."""
    most_seconds: Annotated[float | None, Field(gt=0)] = None


class Turn(Checks):
    """A message of a conversation, with what has to be true of its chat alone."""

    ask: Annotated[str, Field(min_length=1)]
    decide: Literal["", "approve", "decline"] = ""
    """What is decided on every call that waits for approval; without it the chat stays paused."""


class Origin(Part):
    """Where a case came from, so that whoever erases a chat finds what was made of it."""

    chat: str
    stack: str = ""
    made: str = ""


class Case(Checks):
    """A question (``ask``) or a conversation (``turn``). Checks of a conversation hold for its last answer, all of its
    calls, and the sums of its figures."""

    name: Annotated[str, Field(pattern=r"^[\w .,'()-]{1,80}$")]
    profile: str = ""
    ask: str = ""
    decide: Literal["", "approve", "decline"] = ""
    turn: Annotated[list[Turn], Field(max_length=50)] = []
    results: list[GivenResult] = []
    origin: Origin | None = None

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if bool(self.ask) == bool(self.turn):
            raise ValueError("a case has either ask, or one [[case.turn]] for each message")
        if self.turn and self.decide:
            raise ValueError("decide stands in each [[case.turn]]")
        return self

    @property
    def turns(self) -> list[Turn]:
        """Its messages; of a question one without checks of its own, as the case has them."""
        return self.turn or [Turn(ask=self.ask, decide=self.decide, status=self.status, schema_=self.schema_)]


class Labelled(Part):
    """An answer of which a person has said whether it fulfils the rubric: by these the judge is judged."""

    rubric: Annotated[str, Field(min_length=1)]
    answer: str
    passes: bool
    ask: str = ""


class CaseFile(Part):
    """The whole file. ``profile``: of the cases that name none."""

    profile: str = ""
    case: Annotated[list[Case], Field(max_length=MOST_CASES)] = []
    labelled: Annotated[list[Labelled], Field(max_length=MOST_CASES)] = []
