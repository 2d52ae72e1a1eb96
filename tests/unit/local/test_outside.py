"""Which services the local stack calls, with which keys (CONTRACT 2)."""

from __future__ import annotations

import json

import pytest
from dualtrack.models.provider import PROVIDERS
from dualtrack.settings import declared
from dualtrack_stack.local.outside import AT_START, DOCUMENTS, MODEL, outside_from

KEYS = {"anthropic", "voyage", "context7", "github", "otlp", "graph", "bedrock"}
ON_BEDROCK = {"DUALTRACK_PROVIDER": "bedrock"}
AWS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s"}


def test_without_settings_everything_is_offline() -> None:
    outside = outside_from({})
    assert outside.mode == "offline"
    assert [name for name, _ in outside.stand_ins()] == [MODEL, DOCUMENTS]
    assert outside.keys() == dict.fromkeys(KEYS, "none")
    assert outside.status()["mode"] == "offline"
    assert "no language model" in outside.status()["model"]


def test_the_functions_get_the_stand_ins_addresses() -> None:
    outside = outside_from({}).with_stand_ins({MODEL: "http://m", DOCUMENTS: "http://d"})
    parameters = outside.parameters()
    assert (parameters["AnthropicBaseUrl"], parameters["Context7BaseUrl"]) == ("http://m", "http://d")
    assert parameters["DualtrackModel"] == "claude-haiku-5-5"
    assert parameters["McpServers"] == "[]"


@pytest.mark.parametrize(
    "settings", [{"ANTHROPIC_API_KEY": "k"}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}]
)
def test_a_key_or_an_address_for_claude_makes_it_live(settings: dict[str, str]) -> None:
    outside = outside_from(settings)
    assert outside.mode == "live"
    assert outside.stand_ins() == ()
    assert outside.keys()["anthropic"] == settings.get("ANTHROPIC_API_KEY", "none")
    assert outside.parameters()["Context7BaseUrl"] == "https://context7.com"


def test_an_address_for_context7_is_kept_offline_too() -> None:
    outside = outside_from({"CONTEXT7_BASE_URL": "http://127.0.0.1:2", "CONTEXT7_API_KEY": "c"})
    assert outside.stand_ins() == ((MODEL, "dualtrack_stack.local.offline_model"),)
    assert outside.parameters()["Context7BaseUrl"] == "http://127.0.0.1:2"
    assert outside.keys()["context7"] == "c"


def test_offline_no_key_leads_to_the_network() -> None:
    """A Voyage key without an address would be used at Voyage itself."""
    assert outside_from({"VOYAGE_API_KEY": "v"}).keys()["voyage"] == "none"
    outside = outside_from({"VOYAGE_API_KEY": "v", "VOYAGE_BASE_URL": "http://127.0.0.1:3"})
    assert outside.keys()["voyage"] == "v"
    assert outside_from({"ANTHROPIC_API_KEY": "k", "VOYAGE_API_KEY": "v"}).keys()["voyage"] == "v"


def test_the_summaries_model_is_the_model_unless_named() -> None:
    assert outside_from({"DUALTRACK_MODEL": "m"}).parameters()["DualtrackSummaryModel"] == "m"
    named = outside_from({"DUALTRACK_MODEL": "m", "DUALTRACK_SUMMARY_MODEL": "s"})
    assert named.parameters()["DualtrackSummaryModel"] == "s"


def test_githubs_server_is_a_list_of_one() -> None:
    outside = outside_from({"GITHUB_MCP_URL": "http://127.0.0.1:8082/", "GITHUB_TOKEN": "t"})
    (server,) = json.loads(outside.parameters()["McpServers"])
    assert (server["name"], server["url"]) == ("github", "http://127.0.0.1:8082/")
    assert outside.keys()["github"] == "t"
    assert outside.status()["mcp"] is True


def test_githubs_server_and_others_add_up() -> None:
    other = '[{"name": "docs", "url": "http://127.0.0.1:8765/mcp"}]'
    both = outside_from({"GITHUB_MCP_URL": "http://127.0.0.1:8082/", "MCP_SERVERS": other})
    assert [server["name"] for server in json.loads(both.parameters()["McpServers"])] == ["github", "docs"]
    twice = '[{"name": "github", "url": "http://127.0.0.1:8765/mcp"}]'
    with pytest.raises(ValueError, match="two servers have the same name github"):
        outside_from({"GITHUB_MCP_URL": "http://127.0.0.1:8082/", "MCP_SERVERS": twice})


def test_a_wrong_list_of_servers_is_refused_before_anything_starts() -> None:
    with pytest.raises(ValueError, match="MCP_SERVERS"):
        outside_from({"MCP_SERVERS": '[{"name": "x"}]'})


def test_the_length_of_summaries_is_checked_before_anything_is_deployed() -> None:
    assert outside_from({}).parameters()["DualtrackSummaryCharacters"] == "350"
    parameters = outside_from({"DUALTRACK_SUMMARY_CHARACTERS": "900"}).parameters()
    assert parameters["DualtrackSummaryCharacters"] == "900"
    for wrong in ("99", "2001", "many", "-5", "3.5"):
        with pytest.raises(
            ValueError, match=r"DUALTRACK_SUMMARY_CHARACTERS = .*: must be a whole number from 100 to 2000"
        ):
            outside_from({"DUALTRACK_SUMMARY_CHARACTERS": wrong})


def test_the_cap_of_a_chat_is_checked_before_anything_is_deployed() -> None:
    assert outside_from({}).parameters()["DualtrackMaxCost"] == "0"
    assert outside_from({"DUALTRACK_MAX_COST": "0.25"}).parameters()["DualtrackMaxCost"] == "0.25"
    for wrong in ("-1", "1001", "much", "nan", "inf"):
        with pytest.raises(ValueError, match=r"DUALTRACK_MAX_COST = .*: must be a number from 0 to 1000"):
            outside_from({"DUALTRACK_MAX_COST": wrong})


def test_effort_and_thinking_are_checked_before_anything_is_deployed() -> None:
    parameters = outside_from({"DUALTRACK_EFFORT": "low", "DUALTRACK_THINKING_TOKENS": "0"}).parameters()
    assert (parameters["DualtrackEffort"], parameters["DualtrackThinkingTokens"]) == ("low", "0")
    assert outside_from({}).parameters()["DualtrackEffort"] == ""
    for wrong in ({"DUALTRACK_EFFORT": "most"}, {"DUALTRACK_THINKING_TOKENS": "64001"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            outside_from(wrong)


def test_bedrock_is_called_in_the_users_region_with_the_users_credentials() -> None:
    outside = outside_from({**ON_BEDROCK, **AWS, "AWS_REGION": "eu-west-1"})
    assert (outside.mode, outside.problem(), outside.stand_ins()) == ("live", "", ())
    assert outside.parameters()["BedrockBaseUrl"] == "https://bedrock-mantle.eu-west-1.api.aws/anthropic"
    assert json.loads(outside.keys()["bedrock"]) == {"aws_access_key": "AKIA", "aws_secret_key": "s"}


def test_a_stack_without_bedrock_has_no_credentials() -> None:
    assert outside_from(AWS).keys()["bedrock"] == "none"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "AWS_ACCESS_KEY_ID"),
        (AWS, "AWS_REGION"),
        ({"BEDROCK_BASE_URL": "http://127.0.0.1:4"}, ""),
    ],
)
def test_missing_bedrock_settings_are_reported_before_anything_starts(
    settings: dict[str, str], named: str
) -> None:
    problem = outside_from({**ON_BEDROCK, **settings}).problem()
    assert named in problem
    assert bool(named) == bool(problem)


def test_an_unknown_provider_is_refused() -> None:
    known = " or ".join(PROVIDERS)
    with pytest.raises(ValueError, match=rf"DUALTRACK_PROVIDER = azure .*: must be {known}"):
        outside_from({"DUALTRACK_PROVIDER": "azure"})


def test_a_collector_and_its_headers_are_passed_offline_too() -> None:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=k",
    }
    outside = outside_from(settings)
    assert (outside.mode, outside.keys()["otlp"]) == ("offline", "api-key=k")
    assert outside.parameters()["OtelExporterOtlpEndpoint"] == "http://127.0.0.1:4318"
    assert outside_from({}).parameters()["OtelExporterOtlpEndpoint"] == ""


@pytest.mark.parametrize(
    "wrong",
    [
        "127.0.0.1:4318",
        "ftp://otlp.example.com",
        "https://",
        "https://key@otlp.example.com",
        "https://otlp.example.com/?key=k",
        "https://otlp.example.com:0",
        "https://otlp.example.com:99999",
        "https://[otlp",
    ],
)
def test_a_wrong_collector_address_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"OTEL_EXPORTER_OTLP_ENDPOINT = .*: must be"):
        outside_from({"OTEL_EXPORTER_OTLP_ENDPOINT": wrong})


def test_other_settings_count_at_once() -> None:
    """With the addresses of the stand-ins that run."""
    running = outside_from({}).with_stand_ins({MODEL: "http://m", DOCUMENTS: "http://d"})
    renewed, later = running.renewed({"DUALTRACK_MODEL": "claude-opus-5"})
    assert later == ()
    assert renewed.settings.dualtrack_model == "claude-opus-5"
    assert renewed.parameters()["AnthropicBaseUrl"] == "http://m"
    assert renewed.parameters()["DualtrackCacheWord"] == "on"
    assert renewed.renewed({})[0] == running


def test_what_decides_which_processes_run_counts_from_the_next_start_on() -> None:
    running = outside_from({"ALLOWED_ORIGINS": "https://a.example"}).with_stand_ins({MODEL: "http://m"})
    renewed, later = running.renewed(
        {"ANTHROPIC_BASE_URL": "http://other", "DUALTRACK_MODEL": "claude-opus-5"}
    )
    assert later == ("ALLOWED_ORIGINS", "ANTHROPIC_BASE_URL")
    assert (renewed.mode, renewed.origins()) == ("offline", ("https://a.example",))
    assert renewed.settings.anthropic_base_url == "http://m"
    assert renewed.settings.dualtrack_model == "claude-opus-5"


def test_every_setting_that_counts_at_the_start_alone_is_one() -> None:
    assert set(AT_START) <= set(declared())


def test_a_gateway_is_asked_about_its_cache_only_if_that_is_set() -> None:
    gateway = {"ANTHROPIC_BASE_URL": "http://gateway", "ANTHROPIC_API_KEY": "k"}
    for given, wanted in (({}, "own"), ({"DUALTRACK_CACHE_WORD": "on"}, "on")):
        renewed, _ = outside_from(gateway).renewed({**gateway, **given})
        assert renewed.settings.dualtrack_cache_word == wanted
    offline = outside_from({"DUALTRACK_CACHE_WORD": "off"}).with_stand_ins({MODEL: "http://m"})
    assert offline.settings.dualtrack_cache_word == "off"
