"""The in-house tools: a registered tool is run by the function of its kind, offered, priced and listed."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import pytest
from dualtrack import tool
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.credits.plans import PRICE_CLASSES, price_calls
from dualtrack.errors import TookTooLong
from dualtrack.plugin import FOLDER
from dualtrack.profiles import all_profiles
from dualtrack.tool_declaration import declared
from dualtrack.tool_signature import ToolDeclarationError
from dualtrack.tool_values import Injected, ToolKind
from dualtrack.tools import registry
from dualtrack.tools.registry import (
    IN_HOUSE,
    MODULES,
    SPECS_FILE,
    InHouseTools,
    in_house_specs,
    in_house_tools,
)
from dualtrack.tools.running import Running, ToolNeeds
from dualtrack.tools.search_needs import SearchNeeds
from dualtrack_stack.tool_specs import files, spec_of

from tests.unit.runtime.test_imports import ENVIRONMENT

FUNCTIONS = Path(__file__).parents[3] / "functions"


def loaded(function: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A function's handler, as Lambda loads it."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location(f"{function}_handler", FUNCTIONS / function / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", sorted({spec.kind for spec in IN_HOUSE.values() if not spec.outside}))
def test_the_function_of_its_kind_runs_every_registered_tool(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that cannot be imported fails the function's start; for the content of its layers see tests/infra."""
    execute = loaded(kind, monkeypatch).execute
    assert set(execute.tools) == {name for name, spec in IN_HOUSE.items() if spec.kind == kind}


@pytest.mark.parametrize("kind", get_args(ToolKind))
def test_a_tool_of_another_kind_is_unknown(kind: ToolKind) -> None:
    execute = in_house_tools(kind, Injected)
    for name in [*(set(IN_HOUSE) - set(execute.tools)), "no_such_tool"]:
        running: Any = SimpleNamespace(call=SimpleNamespace(tool=name))
        assert execute(running).content == f"Unknown tool: {name}"


def test_what_the_model_sees_is_computed_from_the_functions() -> None:
    """Mended by ``python -m dualtrack_stack.tool_specs``."""
    computed = files()
    assert {file: json.loads(file.read_text(encoding="utf-8")) for file in computed} == computed
    assert registry.PLUGINS == FOLDER
    assert {*FOLDER.glob("*/tools.json")} <= {*computed}


def test_offering_a_tool_loads_none_of_its_code() -> None:
    program = (
        "import sys\nfrom dualtrack.tools.registry import IN_HOUSE, MODULES\n"
        "loaded = {*MODULES.values(), 'dualtrack.tool_declaration', 'annotated_types'} & set(sys.modules)\n"
        "print(len(IN_HOUSE), sorted(loaded))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"{len(IN_HOUSE)} []\n"


def test_a_tool_that_takes_longer_than_it_says_has_failed() -> None:
    """The chat goes on; how long is that tool's own."""
    let_go = threading.Event()

    @tool(seconds=0.05)
    def slow() -> str:
        """Hangs."""
        let_go.wait(30)
        return "late"

    declaration = declared(slow)
    assert declaration
    of: Any = SimpleNamespace(chat_id="ch_1", id="q1-t1", tool="slow", input={})
    running = Running("ann", "cv_1", of, of)
    with pytest.raises(TookTooLong) as caught:
        InHouseTools({"slow": declaration}, Injected)(running)
    let_go.set()
    assert caught.value.seconds == 0.05


@pytest.mark.parametrize(
    ("options", "needs", "said"),
    [
        ({"price": "gold"}, (), "price is 'gold': write one of documentation, "),
        ({"switches": ("speed",)}, (), "no profile switches speed"),
        ({}, (ToolNeeds, SearchNeeds), "no function has what it needs: search, tool."),
    ],
)
def test_a_tool_that_no_function_can_run_is_refused(options: Any, needs: tuple[type, ...], said: str) -> None:
    def run(**_: Any) -> str:  # type: ignore[empty-body]
        """Runs."""

    parameters = [
        inspect.Parameter(f"p{n}", inspect.Parameter.KEYWORD_ONLY, annotation=kind)
        for n, kind in enumerate(needs)
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    declaration = declared(tool(**options)(run))
    assert declaration
    with pytest.raises(ToolDeclarationError, match=said):
        spec_of("dualtrack.tools.some", declaration)


def test_a_tool_that_needs_nothing_runs_in_the_light_function() -> None:
    @tool(effect="reads")
    def bare(text: str) -> str:
        """Does."""
        return text

    declaration = declared(bare)
    assert declaration
    spec = spec_of("dualtrack.tools.some", declaration)
    assert (spec["kind"], spec["price_class"], spec["effect"], spec["repeatable"]) == (
        "tool",
        "other",
        "reads",
        True,
    )


def test_a_tool_is_in_the_layer_of_the_tools_or_a_plug_in_s() -> None:
    """Imports run downwards there (tests/unit/test_rooms.py); a name in a string is not an import."""
    assert all(module.split(".")[1] in ("tools", "plugins") for module in MODULES.values())


def test_a_plug_in_s_tools_stand_where_its_folder_would_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = json.loads(SPECS_FILE.read_bytes())
    moved = [
        {**tool, "module": tool["module"].replace(".tools.", ".plugins.")}
        for tool in listed
        if tool["module"].startswith("dualtrack.tools.documentation.")
    ]
    rest = [tool for tool in listed if tool["name"] not in {tool["name"] for tool in moved}]
    (tmp_path / "tools.json").write_text(json.dumps(rest))
    (tmp_path / "documentation").mkdir()
    (tmp_path / "documentation" / "tools.json").write_text(json.dumps(moved))
    monkeypatch.setattr(registry, "SPECS_FILE", tmp_path / "tools.json")
    monkeypatch.setattr(registry, "PLUGINS", tmp_path)
    assert len(moved) == 1
    assert [tool["name"] for tool in registry.library_tools()] == [tool["name"] for tool in listed]


def test_a_profile_lacks_a_tool_that_is_not_there() -> None:
    """A plug-in's, whose folder is gone."""
    profile = all_profiles()["assistant"]
    here = {name: spec for name, spec in IN_HOUSE.items() if name != profile.tools[-1]}
    assert [spec.name for spec in in_house_specs(profile, here)] == [*profile.tools[:-1]]


def test_every_price_class_has_a_price() -> None:
    assert all(price_calls([name])[0] > 0 for name in PRICE_CLASSES)


def test_the_listed_kinds_are_documented() -> None:
    listed = openapi_document(ROUTES)["components"]["schemas"]["Tool"]
    assert listed["properties"]["kind"]["enum"] == list(get_args(ToolKind))
