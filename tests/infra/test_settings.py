"""A stage's settings are a file; the environment overrides it; nothing from the last deployment is dropped silently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from dualtrack.settings import DEFAULTS, settings_from
from dualtrack_stack.roots import PROJECT_FILE
from dualtrack_stack.settings import (
    RECORD_LIMIT,
    STAGES,
    BadSettings,
    last_deployed,
    read_settings,
    record_name,
    refuse_to_drop,
)

from tests.drivers.templates import Stage
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MAIL = {"ALARM_EMAIL": "operators@example.org"}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    """A project's folder, whose file has these settings of prod."""

    def write(more: str) -> Path:
        (tmp_path / PROJECT_FILE).write_text(f"[stage.prod.settings]\n{more}")
        return tmp_path

    return write


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_its_defaults(stage: str, tmp_path: Path) -> None:
    settings = read_settings(stage, {}, tmp_path)
    assert settings.stage == STAGES[stage]
    assert settings.stage.name == stage
    assert settings.checked().dualtrack_model == DEFAULTS.dualtrack_model


def test_the_environment_overrides_and_an_empty_variable_does_not(written: Callable[[str], Path]) -> None:
    folder = written('DUALTRACK_MODEL = "claude-file"\nDUALTRACK_EFFORT = "low"\n')
    environ = {
        "DUALTRACK_MODEL": "claude-shell",
        "DUALTRACK_EFFORT": "",
        "HOME": "/root",
        "VOYAGE_API_KEY": "x",
    }
    settings = read_settings("prod", environ, folder)
    assert dict(settings.given) == {"DUALTRACK_MODEL": "claude-shell", "DUALTRACK_EFFORT": "low"}
    assert settings.overriding == {"DUALTRACK_MODEL"}


def test_servers_may_be_written_as_tables(written: Callable[[str], Path]) -> None:
    folder = written('[[stage.prod.settings.MCP_SERVERS]]\nname = "docs"\nurl = "https://mcp.example.org/"\n')
    settings = read_settings("prod", {}, folder).checked()
    assert json.loads(settings.mcp_servers)[0]["name"] == "docs"


def test_a_stages_setting_is_over_every_stages(tmp_path: Path) -> None:
    (tmp_path / PROJECT_FILE).write_text(
        'settings = {DUALTRACK_MODEL = "a", DUALTRACK_EFFORT = "low"}\n'
        '[stage.prod]\nrequest_rate = 7\nsettings.DUALTRACK_MODEL = "b"\n'
    )
    prod, staging = (read_settings(name, {}, tmp_path) for name in ("prod", "staging"))
    assert dict(prod.given) == {"DUALTRACK_MODEL": "b", "DUALTRACK_EFFORT": "low"}
    assert dict(staging.given) == {"DUALTRACK_MODEL": "a", "DUALTRACK_EFFORT": "low"}
    assert (prod.stage.request_rate, staging.stage) == (7, STAGES["staging"])


def test_there_is_no_other_stage() -> None:
    with pytest.raises(BadSettings, match="Unknown stage live; known are local, staging, prod"):
        read_settings("live", {})


# ── settings of the last deployment ───────────────────────────────────────────────────────────────


def refused(last: str, environ: Mapping[str, str], folder: Path) -> str:
    """Why a deployment after ``last`` is refused; empty if it is allowed."""
    try:
        agreed = settings_from(environ).dualtrack_drop
        refuse_to_drop(json.loads(last), read_settings("prod", environ, folder), agreed)
    except BadSettings as problem:
        return str(problem)
    return ""


def test_a_variable_of_the_last_shell_is_not_dropped(written: Callable[[str], Path]) -> None:
    folder = written("")
    last = read_settings("prod", MAIL, folder).recorded()
    said = refused(last, {}, folder)
    assert "ALARM_EMAIL: was operators@example.org (from the environment), would be not set" in said
    assert "[stage.prod.settings] of dualtrack.toml, or consent with DUALTRACK_DROP=ALARM_EMAIL." in said
    assert not refused(last, MAIL, folder)
    assert not refused(last, {"ALARM_EMAIL": "others@example.org"}, folder)
    assert not refused(last, {"DUALTRACK_DROP": "ALARM_EMAIL"}, folder)
    assert not refused(last, {"DUALTRACK_DROP": "all"}, folder)
    assert not refused(last, {}, written('ALARM_EMAIL = "operators@example.org"\n'))


def test_the_files_value_does_not_come_back_over_the_last_shells(written: Callable[[str], Path]) -> None:
    folder = written('DUALTRACK_MODEL = "claude-file"\n')
    last = read_settings("prod", {"DUALTRACK_MODEL": "claude-shell"}, folder).recorded()
    assert "was claude-shell (from the environment), would be claude-file" in refused(last, {}, folder)


def test_an_older_checkout_drops_no_line_of_a_file_but_a_change_is_a_decision(
    written: Callable[[str], Path],
) -> None:
    last = read_settings("prod", {}, written('DUALTRACK_MODEL = "claude-file"\n')).recorded()
    assert "was claude-file (from its file), would be not set" in refused(last, {}, written(""))
    assert not refused(last, {}, written('DUALTRACK_MODEL = "claude-other"\n'))


def test_the_account_says_what_was_set() -> None:
    """As in the Parameter Store's answers."""
    recorded = read_settings("prod", MAIL).recorded()
    client: Any = boto3.client("ssm", region_name="us-east-1")
    with Stubber(client) as stub:
        asked = {"Name": "/dualtrack-settings/prod"}
        stub.add_response("get_parameter", {"Parameter": {"Value": recorded}}, asked)
        assert last_deployed(client, "prod") == {"settings": MAIL, "overriding": ["ALARM_EMAIL"]}
        stub.add_client_error("get_parameter", "ParameterNotFound")
        assert last_deployed(client, "prod") is None
        stub.add_client_error("get_parameter", "AccessDeniedException", "not authorized")
        with pytest.raises(BadSettings, match=r"ssm:GetParameter on .*DUALTRACK_DROP=all") as caught:
            last_deployed(client, "prod")
        assert isinstance(caught.value.__cause__, ClientError)


def test_a_record_that_the_parameter_store_would_refuse_stops_the_synthesis(
    written: Callable[[str], Path],
) -> None:
    """Eight kilobytes of an advanced parameter, in bytes."""
    fits = read_settings("prod", {"DUALTRACK_MODEL": "é" * 4_000}, written(""))
    assert len(fits.recorded().encode()) <= RECORD_LIMIT
    too_large = read_settings("prod", {"DUALTRACK_MODEL": "é" * 4_096}, written(""))
    with pytest.raises(BadSettings, match=r"take \d{4} bytes; 8192 can be recorded"):
        too_large.recorded()


def test_the_first_stack_records_what_was_set(assembly: Callable[..., Path]) -> None:
    """Every other stack is deployed after it."""
    folder = assembly("prod", ALL_SET)
    (record,) = Stage("prod", folder).resources("Data", "AWS::SSM::Parameter").values()
    assert json.loads(record["Value"]) == {"settings": ALL_SET, "overriding": sorted(ALL_SET)}
    assert (record["Name"], record["Tier"]) == (record_name("prod"), "Intelligent-Tiering")
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    for name in ("Identity", "Mcp", "Chat", "Page"):
        assert "Data" in artifacts[name]["dependencies"], name
