"""The in-house tools: a registered tool is run by the function of its kind, offered, priced and listed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, get_args

import pytest
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
from dualtrack.credits.plans import CALL_PRICES, price_calls
from dualtrack.tool_values import Kind, PriceClass
from dualtrack.tools.registry import IN_HOUSE, in_house_tools

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


@pytest.mark.parametrize("kind", sorted({spec.kind for spec in IN_HOUSE.values()}))
def test_the_function_of_its_kind_runs_every_registered_tool(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that cannot be imported fails the function's start; for the content of its layers see tests/infra."""
    execute = loaded(kind, monkeypatch).execute
    assert set(execute.runners) == {name for name, spec in IN_HOUSE.items() if spec.kind == kind}
    assert all(callable(runner) for runner in execute.runners.values())


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_tool_of_another_kind_is_unknown(kind: Kind) -> None:
    execute = in_house_tools(kind, lambda: None)
    for name in [*(set(IN_HOUSE) - set(execute.runners)), "no_such_tool"]:
        running: Any = SimpleNamespace(call=SimpleNamespace(tool=name))
        assert execute(running).content == f"Unknown tool: {name}"


def test_a_tool_is_in_the_layer_of_the_tools() -> None:
    """Imports run downwards there (tests/unit/test_rooms.py); a name in a string is not an import."""
    assert all(spec.runner.startswith("dualtrack.tools.") for spec in IN_HOUSE.values())


def test_every_price_class_has_a_price() -> None:
    assert set(get_args(PriceClass)) == {"documentation", *CALL_PRICES}
    assert all(
        price_calls([price_class], documentation_already_paid=False)[0] > 0
        for price_class in get_args(PriceClass)
    )


def test_the_listed_kinds_are_documented() -> None:
    listed = openapi_document(ROUTES)["components"]["schemas"]["Tool"]
    assert listed["properties"]["kind"]["enum"] == list(get_args(Kind))
