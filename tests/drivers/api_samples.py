"""Samples of what the API takes and sends: collected from a stack, compared by their shapes, shown in docs/api.md.

``uv run --group test python -m tests.drivers.api_samples`` writes the stored samples and the routes into that document.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dualtrack.api import openapi
from dualtrack.api.route import Route
from dualtrack.api.table import ROUTES
from dualtrack.plugin import FOLDER, names
from dualtrack.plugin import parts as plugin_parts

from tests.clients.documented import assert_event_documented, operation_of, references_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import httpx

    from tests.clients.stack_client import Person, Received

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = Path(openapi.__file__).with_name("samples.json")
GUIDE: Final = ROOT / "docs" / "api.md"

ENTRIES: Final = 3
"""Entries shown of a list in a sample."""

CHARACTERS: Final = 300
"""Characters shown of a text in a sample."""

_WIDTH: Final = 100
_ROUTES: Final = "<!-- routes -->"
_ROUTES_OF: Final = "<!-- routes of {} -->"
_OF_A_PLUGIN: Final = re.compile(rf"\n{_ROUTES_OF.format('([a-z_]+)')}\n\n(?:- .*\n)*")
_SAMPLE: Final = re.compile(r"<!-- sample ([\w.-]+) -->\n\n```\w+\n.*?\n```\n", re.DOTALL)


@dataclass
class Collector:
    """Takes a sample of each type of body, of each error and of each event. ``clean`` removes the test's markers."""

    clean: Callable[[str], str]
    stream: list[dict[str, Any]] = field(default_factory=list)
    events: dict[str, Any] = field(default_factory=dict)
    bodies: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)

    def call(self, person: Person, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Send a request; keep it and its answer if their types have no samples yet."""
        response = person.http.request(method, path, json=body, **more)
        operation = operation_of(method.lower(), response.url.path)
        assert operation is not None, path
        if response.is_error:
            self.errors.setdefault(response.json()["error"]["code"], self._short(response.json()))
            return response
        if body is not None:
            asked = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            self.bodies.setdefault(_name(asked), self._short(body))
        if response.content:
            content = operation["responses"][str(response.status_code)]["content"]["application/json"]
            self.bodies.setdefault(_name(references_of(content["schema"])[0]), self._short(response.json()))
        return response

    def take(self, events: list[Received]) -> None:
        """Keep a chat's events."""
        for event in events:
            assert_event_documented(event.id, event.kind, event.data)
            shown = {"id": str(event.id), "event": event.kind, "data": self._short(event.data)}
            self.events.setdefault(
                "credits-refused" if event.kind == "credits" and "code" in event.data else event.kind, shown
            )
            if not self.stream or event.id == int(self.stream[-1]["id"]) + 1 <= 2 * ENTRIES:
                self.stream.append(shown)

    def collected(self) -> dict[str, Any]:
        """All samples, by part and name."""
        shown = {"stream": self.stream, "events": self.events, "bodies": self.bodies, "errors": self.errors}
        return {
            name: dict(sorted(part.items())) if isinstance(part, dict) else part
            for name, part in shown.items()
        }

    def _short(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._short(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._short(entry) for entry in _few(value)]
        if isinstance(value, str):
            text = self.clean(value)
            return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"
        return value


def _few(listed: list[Any]) -> list[Any]:
    """The first entry of each kind; without kinds, the first few."""
    kinds = {
        entry["kind"]: entry
        for entry in reversed(listed)
        if isinstance(entry, dict) and "price" not in entry and "kind" in entry
    }
    return [entry for entry in listed if entry is kinds.get(entry["kind"])] if kinds else listed[:ENTRIES]


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def shape(value: Any) -> Any:
    """The structure of a value: names of fields and types of values."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        shapes = {json.dumps(shape(entry), sort_keys=True) for entry in value}
        return sorted(shapes)
    return "number" if type(value) in (int, float) else type(value).__name__


def stored() -> dict[str, Any]:
    """The samples that are kept."""
    return dict(openapi.samples())


def write(samples: Mapping[str, Any], of_plugins: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the samples, those of plug-ins by their names, to the library and to the document."""
    folders = {name: FOLDER / name / SAMPLES.name for name in of_plugins}
    for path, written in ((SAMPLES, samples), *((folders[name], own) for name, own in of_plugins.items())):
        path.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    openapi.samples.cache_clear()
    fill()


def fill() -> None:
    """Write what is stored to the document."""
    GUIDE.write_text(filled(GUIDE.read_text(encoding="utf-8"), stored()), encoding="utf-8")


def filled(text: str, samples: Mapping[str, Any]) -> str:
    """A document with its samples, each behind ``<!-- sample events.turn -->``, and the routes at its end."""
    text = text[: text.index(_ROUTES)] + f"{_ROUTES}\n\n{_routes()}"
    return _SAMPLE.sub(
        lambda comment: f"<!-- sample {comment[1]} -->\n\n{_block(comment[1], samples)}\n", text
    )


def shown_in(text: str) -> list[str]:
    """The samples that a document has."""
    return [comment[1] for comment in _SAMPLE.finditer(text)]


def _block(name: str, samples: Mapping[str, Any]) -> str:
    part, _, which = name.partition(".")
    if part == "stream":
        return f"```text\n{openapi.event_stream(samples[part]).rstrip()}\n```"
    sample = samples[part][which]
    return f"```json\n{laid_out(sample['data'] if part == 'events' else sample)}\n```"


def laid_out(value: Any, indent: int = 0) -> str:
    """JSON with short parts on one line each."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= _WIDTH or not isinstance(value, (dict, list)) or not value:
        return flat
    inside, deeper = " " * (indent + 2), indent + 2
    if isinstance(value, list):
        parts = [laid_out(entry, deeper) for entry in value]
    else:
        parts = [f"{json.dumps(key)}: {laid_out(entry, deeper)}" for key, entry in value.items()]
    opening, closing = ("[", "]") if isinstance(value, list) else ("{", "}")
    return f"{opening}\n{inside}" + f",\n{inside}".join(parts) + f"\n{' ' * indent}{closing}"


def _routes() -> str:
    """Every route: those of the core, then of each plug-in."""
    of_plugins = {
        module.__name__.split(".")[-2]: [one for one in vars(module).values() if isinstance(one, Route)]
        for module in plugin_parts("routes")
    }
    added = [route for routes in of_plugins.values() for route in routes]
    core = _list_of([route for route in ROUTES if route not in added])
    return core + "".join(
        f"\n{_ROUTES_OF.format(name)}\n\n{_list_of(own)}" for name, own in of_plugins.items()
    )


def _list_of(routes: Iterable[Route]) -> str:
    return "".join(f"- `{route.method.upper()} {route.path}`: {route.summary}\n" for route in routes)


def without_the_gone(text: str) -> str:
    """A document without the routes of plug-ins that are not there."""
    return _OF_A_PLUGIN.sub(lambda part: part[0] if part[1] in names() else "", text)


if __name__ == "__main__":
    fill()
