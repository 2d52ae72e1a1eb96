"""The bodies that the API accepts (CONTRACT 4): strict, without unknown fields.

Only ``api`` loads this module. `parse_body` turns an error into a readable 400.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from dualtrack.errors import invalid_request
from dualtrack.ids import FORMS, is_id
from dualtrack.media import VIEWABLE, viewable_type
from dualtrack.message_files import (
    MAX_FILES,
    MESSAGE_CHARACTERS,
    TEXT_TYPE_PATTERN,
    UPLOADED_BYTES,
    is_text_type,
)
from dualtrack.models.turn import MAX_CALLS_PER_TURN
from dualtrack.output_schema import refused_schema
from dualtrack.profiles import all_profiles
from dualtrack.text import preview
from dualtrack.tool_rules import MAX_DESCRIPTION, MAX_NAME, MAX_SERVER_TOOLS
from dualtrack.tools.client_tools import MAX_CLIENT_TOOLS
from dualtrack.tools.mcp.tokens import MAX_TOKEN, TOKEN_PATTERN
from dualtrack.vocabulary import PlanName, Scope  # noqa: TC001 - pydantic reads them

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema, ErrorDetails

MEDIA_TYPE_CHARACTERS: Final = 200
NAME_CHARACTERS: Final = 1_000

UPLOAD_BYTES: Final = 20_000_000
"""Maximum size of a file for a corpus (CONTRACT 4)."""

REASON_CHARACTERS: Final = 1_000
INPUT_CHARACTERS: Final = 32_000
"""Of a decision on a tool call."""

JOB_FILES: Final = 200
"""Maximum files of a job."""

KEY_SECONDS: Final = 10 * 365 * 86_400
"""The longest life of a key that expires."""

OVERLAP_SECONDS: Final = 86_400
"""How long the old secret of a rotated key may hold."""

_PICTURES: Final = "|".join(sorted(VIEWABLE))
_CHARSET: Final = re.compile(r"\s*;\s*charset=\"?utf-8\"?\s*\Z", re.IGNORECASE)
_UNREADABLE: Final = (
    "an attachment must be an image (PNG, JPEG, GIF, WebP), a PDF, or UTF-8 text of a text type"
)


def _plain_text(text: str) -> str:
    """Text that can be stored and sent: without NUL and unpaired surrogates."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must not contain NUL or unpaired surrogates")
    return text


def _media_type(text: str) -> str:
    """The media type in lower case, without parameters: text is always UTF-8, and what an image is its bytes tell."""
    plain = _CHARSET.sub("", text[:MEDIA_TYPE_CHARACTERS]).lower()
    if is_text_type(plain):
        return plain
    if not (shown := viewable_type(plain)):
        raise ValueError(_UNREADABLE)
    return shown


def _query_name(text: str) -> str:
    if not is_id("query_id", text):
        raise ValueError("must name a query of the conversation, such as q7")
    return text


def whole(number: Any) -> Any:
    """Accept 5.0 as an integer, as JSON Schema does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _name_profiles(schema: dict[str, Any]) -> None:
    schema["enum"] = list(all_profiles())


class _WithoutNul:
    """Adds the rule against NUL to the OpenAPI document."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, inner: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"pattern": r"^[^\u0000]*$", **inner(core)}


Text = Annotated[str, AfterValidator(_plain_text), _WithoutNul()]
Title = Annotated[Text, Field(min_length=1, max_length=200, description="The title.")]
ConversationId = Annotated[Text, Field(min_length=1, max_length=64)]
ProfileName = Annotated[Text, Field(min_length=1, max_length=64, json_schema_extra=_name_profiles)]
OptionalProfile = Annotated[
    ProfileName | None,
    Field(description="The conversation's agent, fixed from its first chat on; by default `assistant`."),
]


MediaType = Annotated[
    str,
    Field(max_length=MEDIA_TYPE_CHARACTERS),
    AfterValidator(_media_type),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^(?:{_PICTURES}|{TEXT_TYPE_PATTERN})$",
            "description": "PNG, JPEG, GIF, WebP, PDF, or a text type.",
        }
    ),
]


class RequestBody(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AttachmentBody(RequestBody):
    """A file: an image, a PDF, or text in UTF-8; itself, or by its upload."""

    media_type: Annotated[
        MediaType | None, Field(description="Needed with `data`; by default that of the upload.")
    ] = None
    name: Annotated[
        Text | None,
        Field(
            max_length=NAME_CHARACTERS,
            description="The file's name; put on one line and cut to 100 characters.",
        ),
    ] = None
    data: Annotated[
        str | None,
        Field(
            min_length=1, description="The file in base64.", json_schema_extra={"contentEncoding": "base64"}
        ),
    ] = None
    upload_id: Annotated[
        str | None,
        Field(
            pattern="^up_[0-9a-v]{26}$",
            description="In place of `data`: the upload of the file (`POST /v1/uploads`), which no other message has used.",
        ),
    ] = None

    @model_validator(mode="after")
    def _is_there_once(self) -> Self:
        if (self.data is None) == (self.upload_id is None):
            raise ValueError("a file has either data or upload_id")
        if self.data is not None and self.media_type is None:
            raise ValueError("media_type is missing")
        return self


class UploadBody(RequestBody):
    """A file for a message, which is put to the address in the answer."""

    media_type: MediaType
    bytes: Annotated[
        int,
        Field(ge=1, le=UPLOADED_BYTES, description="Its size: no other number of bytes is taken."),
        BeforeValidator(whole),
    ]
    name: Annotated[Text | None, Field(max_length=NAME_CHARACTERS, description="The file's name.")] = None
    sha256: Annotated[
        str | None,
        Field(
            pattern="^[0-9a-f]{64}$",
            description="The SHA-256 of its bytes, in lower-case hex: no other bytes are taken.",
        ),
    ] = None


class OutputBody(RequestBody):
    """The form of the answer."""

    schema_: Annotated[
        dict[str, Any],
        Field(
            alias="schema",
            description="A JSON Schema (2020-12) of at most 32 KB, which the answer fits as JSON.",
            examples=[{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}],
        ),
    ]

    @field_validator("schema_")
    @classmethod
    def _can_be_checked(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if problem := refused_schema(schema):
            raise ValueError(problem)
        return schema


class ClientToolBody(RequestBody):
    """A tool that the client runs: a call of it pauses the chat, and its result comes as a decision."""

    name: Annotated[
        str,
        Field(
            pattern=rf"^[a-zA-Z0-9_-]{{1,{MAX_NAME}}}$",
            description="Its name, which no tool of the agent has.",
        ),
    ]
    description: Annotated[
        Text, Field(max_length=MAX_DESCRIPTION, description="What it does and when to use it, for the model.")
    ]
    input_schema: Annotated[
        dict[str, Any],
        Field(description="JSON Schema (2020-12) of its arguments, an object, at most 50,000 characters."),
    ]


class ChatBody(RequestBody):
    """The user's message, its conversation and its files; or the wish that an answer goes on."""

    message: Annotated[
        Text | None,
        Field(
            min_length=1,
            max_length=MESSAGE_CHARACTERS,
            description="The user's message; needed unless the answer before is continued.",
        ),
    ] = None
    continue_: Annotated[
        bool,
        Field(
            alias="continue",
            description="In place of a message: the conversation's last answer, which reached its limit of tokens, "
            "goes on where it ended. Takes `conversation_id`, and no files and no `output`.",
        ),
    ] = False
    conversation_id: Annotated[
        ConversationId | None, Field(description="The conversation to continue; by default a new one.")
    ] = None
    profile: OptionalProfile = None
    attachments: Annotated[
        list[AttachmentBody],
        Field(
            max_length=MAX_FILES,
            description="Files: at most 4 MB in total when decoded, and uploads of 50 MB in total.",
        ),
    ] = []
    on_pause: Annotated[
        Literal["cancel"] | None,
        Field(
            description="`cancel` cancels a chat of the conversation that waits for decisions; by default a 409."
        ),
    ] = None
    output: Annotated[
        OutputBody | None,
        Field(
            description="The form of the answer, in place of the profile's; by default the profile's or text."
        ),
    ] = None
    tools: Annotated[
        list[ClientToolBody],
        Field(
            max_length=MAX_CLIENT_TOOLS,
            description="Tools that the client runs, for this chat alone. Together they may take a quarter of the "
            "agent's context.",
        ),
    ] = []

    @model_validator(mode="after")
    def _asks_or_continues(self) -> Self:
        if not self.continue_:
            if self.message is None:
                raise ValueError("message is missing")
            return self
        if self.message is not None or self.attachments or self.output is not None:
            raise ValueError("continue takes no message, no attachments and no output")
        if self.conversation_id is None:
            raise ValueError("continue needs the conversation_id of the answer that goes on")
        return self


class ConversationBody(RequestBody):
    """A conversation before its first query."""

    title: Annotated[
        Title | None, Field(description="The title; by default the beginning of its first query.")
    ] = None
    profile: OptionalProfile = None


class TitleBody(RequestBody):
    """The new title."""

    title: Title


class ForkBody(RequestBody):
    """Where the fork begins: at q1 up to the query after the last."""

    before: Annotated[
        str,
        AfterValidator(_query_name),
        WithJsonSchema(
            {
                "type": "string",
                "pattern": f"^{FORMS['query_id'].pattern}$",
                "description": "The first query that the fork does not share.",
                "examples": [FORMS["query_id"].example],
            }
        ),
    ]


class ConnectionBody(RequestBody):
    """The user's own GitHub token; it is stored encrypted and never returned."""

    token: Annotated[
        Text,
        Field(
            min_length=1,
            max_length=1_000,
            description="A GitHub token; preferably a fine-grained one.",
            json_schema_extra={"pattern": f"^(?:{TOKEN_PATTERN.pattern})$", "maxLength": MAX_TOKEN},
        ),
    ]


KeyName = Annotated[
    Text, Field(min_length=1, max_length=100, description="Shown wherever the key is listed.")
]
_Credits = Annotated[int, Field(ge=0), BeforeValidator(whole)]
_Dollars = Annotated[float, Field(ge=0)]


class CapsBody(RequestBody):
    """What may be spent under a key; null takes a cap away."""

    credits_day: Annotated[_Credits | None, Field(description="Credits a day (UTC).")] = None
    credits_total: Annotated[_Credits | None, Field(description="Credits in all.")] = None
    dollars_day: Annotated[_Dollars | None, Field(description="US dollars of models a day (UTC).")] = None
    dollars_total: Annotated[_Dollars | None, Field(description="US dollars of models in all.")] = None

    def said(self) -> dict[str, float | None]:
        """The caps that are named."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class KeyBody(RequestBody):
    """An API key. What it may do is fixed; its name and its caps can be changed."""

    name: KeyName
    scopes: Annotated[
        list[Scope],
        Field(
            min_length=1,
            max_length=7,
            description="What it may do (docs/keys.md); `admin:…` of administrators.",
        ),
    ]
    profiles: Annotated[
        list[ProfileName], Field(max_length=100, description="The agents that it may use; by default all.")
    ] = []
    caps: Annotated[CapsBody | None, Field(description="By default as much as its owner's account has.")] = (
        None
    )
    expires_in: Annotated[
        int | None,
        Field(ge=1, le=KEY_SECONDS, description="Seconds until it expires; by default it does not."),
        BeforeValidator(whole),
    ] = None
    acts_for: Annotated[
        Literal["any"] | None,
        Field(
            description="`any`: of a service, whose requests each name an end user of it (X-Dualtrack-User)."
        ),
    ] = None


class KeyChangeBody(RequestBody):
    """What changes of a key: its name, or the caps that are named."""

    name: Annotated[KeyName | None, Field(description="Its new name.")] = None
    caps: Annotated[CapsBody | None, Field(description="The caps to change.")] = None


class RotationBody(RequestBody):
    """How long the old secret still holds."""

    overlap: Annotated[
        int,
        Field(ge=0, le=OVERLAP_SECONDS, description="Seconds; 0 ends it at once."),
        BeforeValidator(whole),
    ] = OVERLAP_SECONDS


class PlanBody(RequestBody):
    """A plan."""

    plan: Annotated[PlanName, Field(description="The plan that applies from now on.")]


class GrantBody(RequestBody):
    """Credits for a user's pack."""

    credits: Annotated[
        int, Field(ge=1, le=100_000_000, description="Credits to add."), BeforeValidator(whole)
    ]
    reason: Annotated[Text, Field(min_length=1, max_length=200, description="Shown in the ledger.")]
    grant_id: Annotated[
        Text,
        Field(
            min_length=1, max_length=200, description="The payment's id; a repeated grant changes nothing."
        ),
    ]


FileName = Annotated[Text, Field(min_length=1, max_length=NAME_CHARACTERS, description="The file's name.")]


class AcceptBody(RequestBody):
    """Tools of an MCP server, as an administrator has seen them."""

    marks: Annotated[
        list[Annotated[Text, Field(pattern="^[0-9a-f]{16}$")]],
        Field(
            min_length=1,
            max_length=MAX_SERVER_TOOLS,
            description="As `changed` of `GET /v1/tools` shows them.",
        ),
    ]


class UploadFile(RequestBody):
    """A file to upload."""

    name: FileName
    size: Annotated[
        int, Field(ge=1, le=UPLOAD_BYTES, description="Its size in bytes."), BeforeValidator(whole)
    ]
    sha256: Annotated[
        str, Field(pattern="^[0-9a-f]{64}$", description="The SHA-256 of its bytes, in lower-case hex.")
    ]


class UploadsBody(RequestBody):
    """The files to upload."""

    files: Annotated[
        list[UploadFile], Field(min_length=1, max_length=JOB_FILES, description="The files to upload.")
    ]


class JobFileBody(RequestBody):
    """An uploaded file."""

    upload_id: Annotated[
        str,
        Field(
            pattern="^up_[0-9a-v]{26}_[0-9a-f]{64}$", description="The id from the answer about the upload."
        ),
    ]
    name: FileName


class JobBody(RequestBody):
    """The uploaded files to add to the corpus."""

    files: Annotated[list[JobFileBody], Field(max_length=JOB_FILES, description="The files to add.")] = []
    reset: Annotated[bool, Field(description="Whether to remove everything else from the corpus.")] = False


class DecisionBody(RequestBody):
    """A decision on a tool call: `approve`; or `input`, other arguments with which it is approved; or the `result` of
    the client's own tool; or the user's `answer` to a question."""

    id: Annotated[
        Text, Field(min_length=1, max_length=64, description="The call, as the chat's `pause` lists it.")
    ]
    approve: Annotated[
        bool | None, Field(description="Whether the call may run; false declines a call of any kind.")
    ] = None
    reason: Annotated[
        Text | None, Field(max_length=REASON_CHARACTERS, description="Why it may not, for the model.")
    ] = None
    input: Annotated[
        dict[str, Any] | None, Field(description="The call is approved with these arguments instead.")
    ] = None
    lasts: Annotated[
        Literal["conversation"] | None,
        Field(
            alias="for",
            description="With `approve: true`: the tool, as it is now, runs in this conversation without being asked "
            "again. Only of a call that is `allowable`.",
        ),
    ] = None
    result: Annotated[
        str | None, Field(description="What the client's tool has returned; over 2 MB it is cut.")
    ] = None
    is_error: Annotated[bool | None, Field(description="Whether that is an error.")] = None
    answer: Annotated[
        Text | None,
        Field(min_length=1, max_length=MESSAGE_CHARACTERS, description="What the user answers."),
    ] = None

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if sum(said is not None for said in (self.approve, self.input, self.result, self.answer)) != 1:
            raise ValueError("a decision has one of approve, input, result and answer")
        if self.reason is not None and self.approve is not False:
            raise ValueError("a reason belongs to approve: false")
        if self.lasts is not None and self.approve is not True:
            raise ValueError("for belongs to approve: true")
        if self.is_error is not None and self.result is None:
            raise ValueError("is_error belongs to a result")
        if self.input is not None and len(json.dumps(self.input)) > INPUT_CHARACTERS:
            raise ValueError(f"input may have at most {INPUT_CHARACTERS:,} characters")
        return self


class DecisionsBody(RequestBody):
    """Decisions on tool calls of a paused chat."""

    decisions: Annotated[
        list[DecisionBody],
        Field(min_length=1, max_length=MAX_CALLS_PER_TURN, description="Each call once."),
    ]

    @field_validator("decisions")
    @classmethod
    def _each_call_once(cls, decisions: list[DecisionBody]) -> list[DecisionBody]:
        if len({decision.id for decision in decisions}) < len(decisions):
            raise ValueError("a call is decided twice")
        return decisions


B = TypeVar("B", bound=RequestBody)


def parse_body(kind: type[B], raw: bytes) -> B:
    """The body as its model. Raises 400, which names the first invalid field."""
    try:
        return kind.model_validate(_decoded(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # the name of an unknown field is untrusted: shorten it and make it plain ASCII
        path = preview(ascii(".".join(str(part) for part in first["loc"]))[1:-1]) or "body"
        raise invalid_request(f"{path}: {_said(first)}") from None


def _said(error: ErrorDetails) -> str:
    """What is wrong, in the caller's words. Of a text that was looked at before it is measured, pydantic says items."""
    limits = error.get("ctx") or {}
    if limits.get("field_type") != "Value":
        return error["msg"].removeprefix("Value error, ")
    words = error["msg"].replace("Value", "Text", 1).replace(" items after validation", " characters", 1)
    return words.replace(" item after validation", " character", 1)


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw or b"{}", parse_constant=_refuse_constant, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise invalid_request("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise invalid_request("The body must be a JSON object.")
    return body


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject duplicate keys."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise invalid_request("The body has a duplicate field.")
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def canonical(raw: bytes) -> bytes:
    """The body in canonical form, to recognise repeated requests; unchanged if it is not JSON."""
    try:
        return json.dumps(json.loads(raw), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return raw
