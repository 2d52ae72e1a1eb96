"""What a project's settings tell its tools."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from dualtrack import tool
from dualtrack.runtime import secrets
from dualtrack.settings import NOT_SET, Settings, settings_from
from dualtrack.tool_declaration import declared
from dualtrack.tool_values import ToolContext
from dualtrack.tools import registry
from dualtrack.tools.project_settings import project_settings
from dualtrack.tools.registry import InHouseTools
from dualtrack.tools.running import Running
from moto import mock_aws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STRIPE = "/dualtrack-prod/tools/STRIPE_KEY"


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("STRIPE_KEY", "")  # restores what the code under test sets
    monkeypatch.setenv("TICKETS", "tickets-prod")
    with mock_aws():
        forget()
        yield
        forget()


def forget() -> None:
    secrets._keys.cache_clear()
    clear_caches()  # type: ignore[no-untyped-call]


def put(value: str, name: str = STRIPE) -> None:
    boto3.client("ssm").put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)


def test_tools_get_variables_and_secrets_and_packages_find_them_in_the_environment() -> None:
    put("sk_live_1")
    settings = settings_from({"TOOL_VARIABLES": "TICKETS", "TOOL_SECRETS": STRIPE})
    assert project_settings(settings) == {"TICKETS": "tickets-prod", "STRIPE_KEY": "sk_live_1"}
    assert os.environ["STRIPE_KEY"] == "sk_live_1"


def test_a_new_value_is_read_when_the_old_one_is_forgotten() -> None:
    settings = Settings(tool_secrets=(STRIPE,))
    put("old")
    project_settings(settings)
    put("new")
    assert project_settings(settings)["STRIPE_KEY"] == "old"
    forget()
    assert project_settings(settings)["STRIPE_KEY"] == os.environ["STRIPE_KEY"] == "new"


@pytest.mark.parametrize("stored", ["", NOT_SET])
def test_a_secret_that_nobody_has_put_is_left_out_and_named_in_the_log(
    stored: str, caplog: pytest.LogCaptureFixture
) -> None:
    if stored:
        put(stored)
    with caplog.at_level(logging.ERROR):
        assert project_settings(Settings(tool_secrets=(STRIPE,))) == {}
    assert f"there is no secret in the parameter {STRIPE}" in caplog.text


def test_a_tool_that_asks_for_its_context_gets_them() -> None:
    @tool
    def charge(context: ToolContext) -> str:
        """Charge a card."""
        return context.settings["STRIPE_KEY"] + context.user

    put("sk_live_1")
    declaration = declared(charge)
    assert declaration is not None
    execute = InHouseTools(
        {"charge": declaration}, settings=lambda: project_settings(Settings(tool_secrets=(STRIPE,)))
    )
    assert execute(running("charge")).content == "sk_live_1ann"


def running(name: str) -> Running:
    from types import SimpleNamespace

    chat: Any = SimpleNamespace(chat_id="ch_1")
    call: Any = SimpleNamespace(tool=name, input={}, id="q1-t1")
    return Running("ann", "cv_1", chat, call)


@pytest.mark.parametrize(
    "source", ["raise KeyError('STRIPE_KEY')", "import sys; sys.exit(1)", "import no_such"]
)
def test_a_module_that_cannot_be_imported_fails_its_own_tools_alone(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = registry._declared("broken_module", "charge")
    assert isinstance(found, ImportError)
    assert "broken_module cannot be imported" in caplog.text
    with pytest.raises(ImportError, match="broken_module cannot be imported"):
        InHouseTools({"charge": found})(running("charge"))
    assert InHouseTools({"charge": found})(running("other")).content == "Unknown tool: other"
