"""The fields that the code behind OpenAI's API asks a body for, and the events that it streams: that API is larger than
what is served, and its clients send more than we read, so its declaration is the code that reads it.

Bodies of every form (`PROBES`) are parsed, and each name that is looked up in them is noted, with its place:
``messages[].content[].image_url.url``.
"""

from __future__ import annotations

import base64
import contextlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import ApiError
from dualtrack.plugin import FOLDER
from dualtrack.plugins.openai.declared import COMPLETE, PATH, RESPOND
from dualtrack.plugins.openai.prompt import prompt_of
from dualtrack.plugins.openai.responses_prompt import requested_of
from dualtrack.plugins.openai.utility import is_task

from tests.drivers.images import png

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.doors import Door

COMPLETIONS: Final = PATH + COMPLETE.path
RESPONSES: Final = PATH + RESPOND.path

_EVENT: Final = re.compile(r'"(response\.[a-z_.]+)"')
_ARGUMENTS: Final = "response.function_call_arguments"
"""The beginning of two events' names."""

_OPAQUE: Final = frozenset({"parameters", "schema", "metadata"})
"""Fields whose content is the caller's own."""

_OF_THE_OTHER: Final = {
    RESPONSES: {
        "input[].content[].file", "input[].tool_calls", "text.format.json_schema", "tools[].function",
    }
}  # fmt: skip
"""A chat completion's forms, which the same code reads of a response's body: no form of a response's."""

_PNG: Final = f"data:image/png;base64,{base64.b64encode(png(b'x')).decode()}"
_CALL: Final = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_SCHEMA: Final = {"type": "object"}

PROBES: Final[dict[str, list[dict[str, Any]]]] = {
    COMPLETIONS: [
        {
            "model": "assistant",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello."},
                {"role": "assistant", "content": None, "tool_calls": [_CALL]},
                {"role": "tool", "tool_call_id": "call_a", "content": "seen"},
                {"role": "assistant", "content": "Hello."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Look."},
                        {"type": "image_url", "image_url": {"url": _PNG}},
                        {"type": "file", "file": {"file_data": _PNG, "filename": "a.png"}},
                    ],
                },
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {"type": "function", "function": {"name": "look", "description": "x", "parameters": _SCHEMA}}
            ],
            "response_format": {"type": "json_schema", "json_schema": {"schema": _SCHEMA}},
        },
    ],
    RESPONSES: [
        {
            "model": "assistant",
            "input": [
                {"role": "user", "content": "Hello."},
                {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_a", "output": "seen"},
                {"role": "assistant", "content": "No.", "status": "incomplete"},
                {"role": "assistant", "content": "Hello."},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Look."},
                        {"type": "input_image", "image_url": _PNG},
                        {"type": "input_file", "file_data": _PNG, "filename": "a.png"},
                    ],
                },
            ],
            "tools": [{"type": "function", "name": "look", "description": "x", "parameters": _SCHEMA}],
            "text": {"format": {"type": "json_schema", "name": "x", "strict": True, "schema": _SCHEMA}},
        },
        {"input": [{"type": "item_reference", "id": "msg_01jd8m3v5q0000000000000000_1"}]},
        {"conversation": {"id": "cv_a"}, "input": "Hello.", "model": "assistant"},
    ],
}
"""By path. A form that no body here has is not seen: add one with the code that reads it."""


class _Asked(dict[str, Any]):
    """A mapping that notes what is looked up in it."""

    def __init__(self, body: dict[str, Any], at: str, noted: set[str]) -> None:
        super().__init__({name: _wrapped(part, self._place(at, name), noted) for name, part in body.items()})
        self._at, self._noted = at, noted

    @staticmethod
    def _place(at: str, name: str) -> str:
        return f"{at}.{name}" if at else name

    def _note(self, name: object) -> None:
        self._noted.add(self._place(self._at, str(name)))

    def get(self, name: str, default: Any = None) -> Any:
        self._note(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._note(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._note(name)
        return super().__contains__(name)


def _wrapped(value: Any, at: str, noted: set[str]) -> Any:
    if at.rpartition(".")[2].removesuffix("[]") in _OPAQUE:
        return value
    if isinstance(value, list):
        return [_wrapped(entry, f"{at}[]", noted) for entry in value]
    return _Asked(value, at, noted) if isinstance(value, dict) else value


def fields_of(door: Door) -> frozenset[str]:
    """The fields that are read of a body that is sent to this door (``tools[].name``), and the kinds of its events."""
    return _asked_of(door.path).union(_events_of(door.path))


@cache
def _asked_of(path: str) -> frozenset[str]:
    return frozenset(_asked(path)).difference(_OF_THE_OTHER.get(path, ()))


def _events_of(path: str) -> Iterator[str]:
    if path == RESPONSES:
        source = (FOLDER / "openai" / "responses.py").read_text(encoding="utf-8")
        yield from (f"event {kind}" for kind in _EVENT.findall(source) if kind != _ARGUMENTS)


def _asked(path: str) -> Iterator[str]:
    for probe in PROBES.get(path, ()):
        noted: set[str] = set()
        body: dict[str, Any] = _wrapped(probe, "", noted)
        if path == COMPLETIONS:
            is_task(body, ())
        with contextlib.suppress(
            ApiError
        ):  # a reference to an item that is not there, a call that is not ours
            prompt_of(body) if path == COMPLETIONS else requested_of(body)
        yield from noted
