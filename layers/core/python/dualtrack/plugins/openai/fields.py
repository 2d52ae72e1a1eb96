"""The fields of a request to OpenAI's API (CONTRACT 10), one table for each of its two routes with a body: what is
served, what is ignored, what is refused by its name. The routes refuse by these tables (`refuse_unserved`),
docs/clients.md shows them (`as_table`), and a tour of all doors finds here which fields there are. Pure.

A field that no table names is ignored: clients send fields of their own and of other services.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.errors import invalid_request

if TYPE_CHECKING:
    from collections.abc import Mapping

Use = Literal["served", "ignored", "refused"]


@dataclass(frozen=True, slots=True)
class RequestField:
    """``note``: what it does here, or what to do instead; ``harmless``: values of a refused field that ask for
    nothing."""

    use: Use
    note: str = ""
    harmless: tuple[Any, ...] = (None,)


def _served(note: str) -> RequestField:
    return RequestField("served", note)


def _refused(note: str, *harmless: Any) -> RequestField:
    return RequestField("refused", note, (None, *harmless))


_IGNORED: Final = RequestField("ignored")
_LOGPROBS: Final = _refused("the service has none", 0, False)

_BOTH: Final[Mapping[str, RequestField]] = MappingProxyType(
    {
        "model": _served("a profile, or `utility`"),
        "stream": _served("server-sent events"),
        "tools": _served("functions that the client runs"),
        "tool_choice": _served("`auto`, `none`, `required`, a function by name, `allowed_tools`"),
        "user": _served("histories of one are not found for another"),
        "safety_identifier": _served("the same"),
        "temperature": _IGNORED,
        "top_p": _IGNORED,
        "parallel_tool_calls": _IGNORED,
        "service_tier": _IGNORED,
        "prompt_cache_key": _IGNORED,
        "prompt_cache_retention": _IGNORED,
        "store": _IGNORED,
        "top_logprobs": _LOGPROBS,
    }
)

COMPLETION: Final[Mapping[str, RequestField]] = MappingProxyType(
    {
        **_BOTH,
        "messages": _served(
            "the conversation; its newest message is read strictly, older ones with what they have"
        ),
        "stream_options": _served("`include_usage`"),
        "response_format": _served("`text`, `json_object`, `json_schema`"),
        "stop": _served("up to four texts that end an answer"),
        "max_tokens": _served("tokens of each model call; the profile's limit holds besides"),
        "max_completion_tokens": _served("the same"),
        "frequency_penalty": _IGNORED,
        "presence_penalty": _IGNORED,
        "logit_bias": _IGNORED,
        "seed": _IGNORED,
        "metadata": _IGNORED,
        "reasoning_effort": _IGNORED,
        "verbosity": _IGNORED,
        "prediction": _IGNORED,
        "n": _refused("one answer a request", 1),
        "functions": _refused("name them in tools", [], {}),
        "function_call": _refused("say it in tool_choice", "auto", "none"),
        "logprobs": _LOGPROBS,
        "modalities": _refused("answers are text", ["text"], []),
        "audio": _refused("answers are text"),
        "web_search_options": _refused("what searches is a tool of the profile"),
    }
)
"""``POST /chat/completions``."""

RESPONSE: Final[Mapping[str, RequestField]] = MappingProxyType(
    {
        **_BOTH,
        "input": _served(
            "text, or items; the newest message is read strictly, older items with what they have"
        ),
        "instructions": _served("for this request alone"),
        "previous_response_id": _served("the response that it follows"),
        "conversation": _served("an id, or an object with one"),
        "background": _served("returns at once"),
        "include": _served("`dualtrack:tool_call`; others are ignored"),
        "metadata": _served("returned with the response"),
        "text": _served("`format`: `text`, `json_object`, `json_schema`; `verbosity` is ignored"),
        "max_output_tokens": _served("tokens of each model call; the profile's limit holds besides"),
        "reasoning": _IGNORED,
        "truncation": _IGNORED,
        "stream_options": _IGNORED,
        "context_management": _IGNORED,
        "prompt": _refused("send the text as instructions"),
        "max_tool_calls": _refused("the profile has a number of turns"),
    }
)
"""``POST /responses``."""


def refuse_unserved(body: Mapping[str, Any], fields: Mapping[str, RequestField]) -> None:
    """Raise 400 for the first field that is not served and asks for something."""
    for name, field in fields.items():
        if field.use == "refused" and name in body and body[name] not in field.harmless:
            raise invalid_request(f"{name}: {field.note}.")


def as_table(fields: Mapping[str, RequestField]) -> str:
    """The table of docs/clients.md."""
    served = [
        f"| `{name}` | {field.note} |" for name, field in sorted(fields.items()) if field.use == "served"
    ]
    ignored = ", ".join(f"`{name}`" for name, field in sorted(fields.items()) if field.use == "ignored")
    refused = "; ".join(
        f"`{name}` ({field.note})" for name, field in sorted(fields.items()) if field.use == "refused"
    )
    return "\n".join(
        ["| field | |", "|---|---|", *served, f"| *ignored* | {ignored} |", f"| *400* | {refused} |"]
    )
