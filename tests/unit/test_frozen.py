"""Values that cannot be changed, all the way down."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import types
from importlib import import_module

import dualtrack
import pytest
from dualtrack.frozen import dumps, freeze, loads, thaw

NESTED = {"a": [1, {"b": [None, "x"]}], "c": {}}


def test_nothing_inside_can_be_changed() -> None:
    """Neither mappings nor values in lists."""
    frozen = freeze(NESTED)
    with pytest.raises(TypeError):
        frozen["a"] = 1
    with pytest.raises(TypeError):
        frozen["a"][1]["b"] = 1
    with pytest.raises(AttributeError):
        frozen["a"].append(1)


def test_a_frozen_value_can_be_thawed() -> None:
    """And the original is unchanged."""
    assert thaw(freeze(NESTED)) == NESTED
    assert thaw(loads(dumps(NESTED))) == NESTED


def test_key_order_is_kept() -> None:
    """The sent prefix depends on it."""
    assert dumps({"b": 1, "a": 2}) == '{"b":1,"a":2}'


LIGHT = (
    "models.turn",
    "memory.view",
    "memory.records",
    "memory.sending",
    "storage.chats",
    "events",
    "tool_values",
    "tool_signature",
    "tool_declaration",
    "storage.history",
    "profiles",
    "credits.account",
    "credits.plans",
)


@pytest.mark.parametrize("name", LIGHT)
def test_every_value_class_of_the_domain_is_frozen(name: str) -> None:
    """No dataclass of these modules can be assigned to, and none has a list, set or dict field."""
    module = import_module(f"{dualtrack.__name__}.{name}")
    classes = [
        value
        for _, value in inspect.getmembers(module, dataclasses.is_dataclass)
        if value.__module__ == module.__name__
    ]
    assert classes
    for value_class in classes:
        assert getattr(value_class, "__dataclass_params__").frozen, value_class  # noqa: B009 - not in the stubs
        mutable = [
            field.name
            for field in dataclasses.fields(value_class)
            if str(field.type).startswith(("list", "dict", "set"))
        ]
        assert not mutable, (value_class, mutable)


def test_every_module_can_be_imported() -> None:
    """No module hides a missing name behind a type-checking block."""
    for module in pkgutil.walk_packages(dualtrack.__path__, "dualtrack."):
        assert isinstance(import_module(module.name), types.ModuleType)
