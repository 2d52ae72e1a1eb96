"""The bodies that the API takes (CONTRACT 4): strict, unknown fields refused.

Only ``api`` loads this module. `parse_body` turns an error into a readable 400.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
)

from dualtrack.chat.attached_files import File
from dualtrack.errors import ApiError, invalid_request
from dualtrack.media import VIEWABLE, refusal
from dualtrack.message_files import (
    FILES_BYTES,
    MAX_FILES,
    TEXT_TYPE_PATTERN,
    clean_name,
    is_text_type,
    not_text,
)
from dualtrack.profiles import all_profiles
from dualtrack.text import preview
from dualtrack.tools.mcp.tokens import MAX_TOKEN, TOKEN_PATTERN

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

MESSAGE_CHARACTERS: Final = 32_000
MEDIA_TYPE_CHARACTERS: Final = 200
NAME_CHARACTERS: Final = 1_000

UPLOAD_BYTES: Final = 20_000_000
"""Of one file for a corpus (CONTRACT 4)."""

JOB_FILES: Final = 200
"""Of one job."""

PlanName = Literal["free", "pro"]

_PICTURES: Final = "|".join(sorted(VIEWABLE))
_CHARSET: Final = re.compile(r"\s*;\s*charset=\"?utf-8\"?\s*\Z", re.IGNORECASE)
_QUERY: Final = re.compile(r"q[1-9][0-9]{0,8}")
_UNREADABLE: Final = "an attachment is an image (PNG, JPEG, GIF, WebP), a PDF, or UTF-8 text of a text type"


def _plain_text(text: str) -> str:
    """Text that can be stored and sent: no NUL, no half of a surrogate pair."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("must not contain NUL or unpaired surrogates")
    return text


def _media_type(text: str) -> str:
    """The media type in lower case, without a charset: text is always UTF-8."""
    plain = _CHARSET.sub("", text[:MEDIA_TYPE_CHARACTERS]).lower()
    if plain not in VIEWABLE and not is_text_type(plain):
        raise ValueError(_UNREADABLE)
    return plain


def _query_name(text: str) -> str:
    if not _QUERY.fullmatch(text):
        raise ValueError("must name a query of the conversation, such as q7")
    return text


def _whole(number: Any) -> Any:
    """Accept 5.0 as an integer, as JSON Schema does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _name_profiles(schema: dict[str, Any]) -> None:
    schema["enum"] = list(all_profiles())


class _WithoutNul:
    """Adds the rule to the OpenAPI document."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, inner: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"pattern": r"^[^\u0000]*$", **inner(core)}


Text = Annotated[str, AfterValidator(_plain_text), _WithoutNul()]
Title = Annotated[Text, Field(min_length=1, max_length=200, description="What it is called.")]
ConversationId = Annotated[Text, Field(min_length=1, max_length=64)]
ProfileName = Annotated[Text, Field(min_length=1, max_length=64, json_schema_extra=_name_profiles)]
OptionalProfile = Annotated[
    ProfileName | None,
    Field(description="The agent that leads the conversation, from its first chat on; else `assistant`."),
]


MediaType = Annotated[
    str,
    Field(max_length=MEDIA_TYPE_CHARACTERS),
    AfterValidator(_media_type),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^(?:{_PICTURES}|{TEXT_TYPE_PATTERN})$",
            "description": "PNG, JPEG, GIF, WebP, PDF, or a type of text.",
        }
    ),
]


class Body(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AttachmentBody(Body):
    """A file: an image, a PDF, or text in UTF-8; base64."""

    media_type: MediaType
    name: Annotated[
        Text | None,
        Field(
            max_length=NAME_CHARACTERS, description="What the file is called; kept on one line, cut to 100."
        ),
    ] = None
    data: Annotated[
        str,
        Field(min_length=1, description="The file.", json_schema_extra={"contentEncoding": "base64"}),
    ]


class ChatBody(Body):
    """What is asked, where, and with which files."""

    message: Annotated[
        Text, Field(min_length=1, max_length=MESSAGE_CHARACTERS, description="What the user says.")
    ]
    conversation_id: Annotated[
        ConversationId | None, Field(description="The conversation to go on with; else a new one.")
    ] = None
    profile: OptionalProfile = None
    attachments: Annotated[
        list[AttachmentBody], Field(max_length=MAX_FILES, description="Files, 4 MB decoded in all.")
    ] = []


class ConversationBody(Body):
    """A conversation before its first query."""

    title: Annotated[Title | None, Field(description="Else the start of its first query.")] = None
    profile: OptionalProfile = None


class TitleBody(Body):
    """The new title."""

    title: Title


class ForkBody(Body):
    """Where the fork begins: q1 to the query behind the last."""

    before: Annotated[
        str,
        AfterValidator(_query_name),
        WithJsonSchema(
            {
                "type": "string",
                "pattern": f"^{_QUERY.pattern}$",
                "description": "The first query that the fork does not share.",
                "examples": ["q7"],
            }
        ),
    ]


class ConnectionBody(Body):
    """The user's own GitHub token; it is stored encrypted and never returned."""

    token: Annotated[
        Text,
        Field(
            min_length=1,
            max_length=1_000,
            description="A GitHub token; a fine-grained one is best.",
            json_schema_extra={"pattern": f"^(?:{TOKEN_PATTERN.pattern})$", "maxLength": MAX_TOKEN},
        ),
    ]


class PlanBody(Body):
    """A plan."""

    plan: Annotated[PlanName, Field(description="The plan that applies from now on.")]


class GrantBody(Body):
    """Credits for a user's pack."""

    credits: Annotated[
        int, Field(ge=1, le=100_000_000, description="How many are added."), BeforeValidator(_whole)
    ]
    reason: Annotated[Text, Field(min_length=1, max_length=200, description="Shown in the ledger.")]
    grant_id: Annotated[
        Text,
        Field(min_length=1, max_length=200, description="The payment's id: a repeated one changes nothing."),
    ]


FileName = Annotated[Text, Field(min_length=1, max_length=NAME_CHARACTERS, description="What it is called.")]


class UploadFile(Body):
    """A file that is about to be uploaded; its size in bytes."""

    name: FileName
    size: Annotated[int, Field(ge=1, le=UPLOAD_BYTES, description="In bytes."), BeforeValidator(_whole)]


class UploadsBody(Body):
    """The files that are about to be uploaded."""

    files: Annotated[
        list[UploadFile], Field(min_length=1, max_length=JOB_FILES, description="What is to be uploaded.")
    ]


class JobFileBody(Body):
    """A file that was uploaded."""

    upload_id: Annotated[
        str, Field(pattern="^up_[0-9a-v]{26}$", description="As the answer about the upload gave it.")
    ]
    name: FileName


class JobBody(Body):
    """The files that were uploaded and are to be taken in."""

    files: Annotated[list[JobFileBody], Field(max_length=JOB_FILES, description="What is taken in.")] = []
    reset: Annotated[bool, Field(description="Whether all else that is in the corpus goes.")] = False


B = TypeVar("B", bound=Body)


def parse_body(kind: type[B], raw: bytes) -> B:
    """The body as its model; 400 that names the first wrong field."""
    try:
        return kind.model_validate(_decoded(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # the name of an unknown field is untrusted: shorten it and make it plain ASCII
        place = preview(ascii(".".join(str(part) for part in first["loc"]))[1:-1]) or "body"
        raise invalid_request(f"{place}: {first['msg'].removeprefix('Value error, ')}") from None


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
        raise invalid_request("A field stands twice in the body.")
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def canonical(raw: bytes) -> bytes:
    """The body in a canonical form, so that an Idempotency-Key recognises it; unchanged if it is not JSON."""
    try:
        return json.dumps(json.loads(raw), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return raw


def decode_files(attachments: list[AttachmentBody]) -> tuple[File, ...]:
    """The files' bytes; 400 if a file is not of its declared type, 413 if they have more than 4 MB in all."""
    files = tuple(_file(place, one) for place, one in enumerate(attachments))
    if sum(len(one.data) for one in files) > FILES_BYTES:
        raise ApiError("too_large", "Attachments may have 4 MB in all.")
    return files


def _file(place: int, attachment: AttachmentBody) -> File:
    try:
        data = base64.b64decode(attachment.data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_request(f"attachments.{place}.data: not valid base64") from None
    problem = not_text(data) if is_text_type(attachment.media_type) else refusal(attachment.media_type, data)
    if problem:
        raise invalid_request(f"attachments.{place}: {problem}")
    return File(attachment.media_type, data, clean_name(attachment.name or ""))
