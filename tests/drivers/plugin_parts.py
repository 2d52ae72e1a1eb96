"""What the tests of plug-ins add to the shared drivers. A folder of ``tests/plugins`` may have

    page_views.py       VIEWS of the page, and ``prepare(person)``, which makes what they show
    tour_stops.py       stops of the tour
    asked_fields.py     ``fields_of(door)``: what its own API reads of a body, and the kinds of events that it streams
    crash_scenarios.py  SCENARIOS of the crash matrix; what they add: steps that begin chats (BEGINS), other STEPS, and
                        the SERVICES that these call
    api_requests.py     BODIES that are valid, and ``made(api)``, ids of what there is
    api_samples.py      ``samples_of(clean, person)``, for the API's document
    release_moments.py  ``store(world)``, what a release writes, and ``read(stores)``
    permissions.py      what its functions may do: TABLES, INDEXES, OTHER of their templates, SEEN on a stack; KEYED,
                        what is refused them; MODULES, the heavy ones that they load
    measured.py         ``load(person)``, the heaviest that its functions may have to do
    recorded.py         ``tell(person, script)``, a story whose calls are recorded; READERS, its functions that read
                        files of strangers
    metrics.py          ``write(function, capture)``: its functions write each metric of its alarms
    pictures.py         ``take(url)``, the documents' pictures

besides its tests, of which ``test_page.py`` has the browser and ``test_stack.py`` the deployed stack.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack.plugin import names

if TYPE_CHECKING:
    from types import ModuleType

TESTS: Final = Path(__file__).parents[1] / "plugins"


def parts(name: str) -> tuple[ModuleType, ...]:
    """``tests.plugins.PLUGIN.NAME`` of each plug-in that has one."""
    return tuple(
        import_module(f"tests.plugins.{plugin}.{name}")
        for plugin in names()
        if (TESTS / plugin / f"{name}.py").is_file()
    )
