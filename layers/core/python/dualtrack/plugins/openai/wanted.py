"""``tool_choice``, ``stop`` and the limits of tokens of a request (CONTRACT 10). Pure; both of OpenAI's forms are read.

The model is told of a choice only if it has not followed it: a choice that is forced on the wire would make the service
read the conversation anew, and it does not go together with thinking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import invalid_request
from dualtrack.models.wanted import Wanted
from dualtrack.plugins.openai.contents import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_STOPS: Final = 4
STOP_CHARACTERS: Final = 200

_LIMITS: Final = ("max_completion_tokens", "max_tokens")


def wanted_of(body: Mapping[str, Any]) -> Wanted | None:
    """What the body asks for; None for nothing. Raises 400, which names the field."""
    must_call, tools = _choice(body.get("tool_choice"), _declared(body.get("tools")))
    wanted = Wanted(_most_tokens(body), _stops(body.get("stop")), must_call, tools)
    return None if wanted == Wanted() else wanted


def _most_tokens(body: Mapping[str, Any]) -> int:
    given = {name: value for name in _LIMITS if (value := body.get(name)) is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise invalid_request(f"{name}: a whole number above 0.")
    return min(given.values(), default=0)


def _stops(sent: object) -> tuple[str, ...]:
    if sent is None:
        return ()
    stops = [sent] if isinstance(sent, str) else sent
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise invalid_request("stop: a text, or a list of texts.")
    if len(stops) > MOST_STOPS or any(len(stop) > STOP_CHARACTERS for stop in stops):
        raise invalid_request(f"stop: at most {MOST_STOPS} texts of {STOP_CHARACTERS} characters.")
    if any(not stop.strip() or plain(stop) != stop for stop in stops):
        raise invalid_request("stop: white space alone ends no answer here.")
    return tuple(dict.fromkeys(stops))


def _declared(sent: object) -> frozenset[str]:
    tools = sent if isinstance(sent, list) else []
    return frozenset(name for tool in tools if (name := _name(tool)))


def _name(tool: object) -> str:
    """The name of a function, declared or chosen, in either form."""
    nested = tool.get("function") if isinstance(tool, dict) else None
    held = nested if isinstance(nested, dict) else tool
    name = held.get("name") if isinstance(held, dict) else None
    return name if isinstance(name, str) else ""


def _choice(sent: object, declared: frozenset[str]) -> tuple[bool, tuple[str, ...] | None]:
    """Whether the answer has to end with a call, and the tools that may be called."""
    if sent in (None, "auto"):
        return False, None
    if sent == "none":
        return False, ()
    if sent == "required":
        return True, _known("", None, declared)
    kind = sent.get("type") if isinstance(sent, dict) else None
    if kind == "function":
        return True, _known("", [sent], declared)
    if kind == "allowed_tools" and isinstance(sent, dict):
        nested = sent.get("allowed_tools")
        allowed = nested if isinstance(nested, dict) else sent
        if allowed.get("mode", "auto") not in ("auto", "required"):
            raise invalid_request("tool_choice.mode: auto or required.")
        return allowed.get("mode") == "required", _known(".tools", allowed.get("tools"), declared)
    raise invalid_request("tool_choice: auto, none, required, a function by its name, or allowed_tools.")


def _known(place: str, chosen: object, declared: frozenset[str]) -> tuple[str, ...] | None:
    """The names of the chosen tools; None, for all, if none is chosen. Raises 400 for one that is not declared."""
    if not declared:
        raise invalid_request("tool_choice: there are no tools to choose from.")
    if chosen is None and not place:
        return None
    if not isinstance(chosen, list) or not chosen:
        raise invalid_request(f"tool_choice{place}: name functions of tools.")
    for tool in chosen:
        if _name(tool) not in declared:
            raise invalid_request(
                f"tool_choice{place}: {_name(tool)[:64]!r} is none of the functions in tools."
            )
    return tuple(dict.fromkeys(map(_name, chosen)))
