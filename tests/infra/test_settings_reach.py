"""Every setting of the README's table can be set in a stage's file and in the environment, and reaches the functions
that use it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from infra.layers import PROFILES, ROOT
from infra.local.synth import CACHE
from infra.settings import FOLDER, NAMES, is_key, read_settings
from infra.stacks.function_specs import SPECS
from infra.stages import services_from
from tests.drivers.documents import DOCUMENTS
from tests.drivers.templates import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OWN_PROFILES: Final = CACHE / "profiles-of-a-test"
ALL_CHOSEN: Final[dict[str, str]] = {
    "ANTHROPIC_BASE_URL": "https://claude.example",
    "DUALTRACK_PROVIDER": "bedrock",
    "BEDROCK_BASE_URL": "https://bedrock.example",
    "DUALTRACK_MODEL": "claude-of-turns",
    "DUALTRACK_SUMMARY_MODEL": "claude-of-summaries",
    "DUALTRACK_SUMMARY_CHARACTERS": "420",
    "DUALTRACK_EFFORT": "low",
    "DUALTRACK_THINKING_TOKENS": "4321",
    "DUALTRACK_MAX_COST": "0.25",
    "VOYAGE_BASE_URL": "https://voyage.example",
    "DUALTRACK_EMBEDDING_MODEL": "voyage-of-a-test",
    "DUALTRACK_COURSE_RANKING": "keywords",
    "DUALTRACK_COURSE_INDEX": "s3vectors",
    "DUALTRACK_GRAPH_ENGINE": "bolt",
    "DUALTRACK_GRAPH_URL": "bolt+s://graph.example:7687",
    "DUALTRACK_GRAPH_USER": "reader",
    "CONTEXT7_BASE_URL": "https://context7.example",
    "GITHUB_MCP_URL": "https://mcp.example",
    "MCP_SERVERS": '[{"name": "docs", "url": "https://docs.example/mcp"}]',
    "DUALTRACK_PROFILES": str(OWN_PROFILES),
    "OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector.example",
    "ALLOWED_ORIGINS": "https://page.example",
}
"""A value for each, which is not its default."""

ELSEWHERE: Final = {
    "DUALTRACK_COURSE_INDEX": "COURSE_VECTORS",
    "GITHUB_MCP_URL": "MCP_SERVERS",
    "MCP_SERVERS": "MCP_SERVERS",
    "DUALTRACK_PROFILES": "",
}
"""What reaches a function under another name or in another form; nothing of the profiles: they are in a layer."""


def documented() -> set[str]:
    """The settings of the README's table that are no keys."""
    text = (ROOT / "README.md").read_text().split("\n## Settings\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row) if not is_key(name)}


def as_file(settings: Mapping[str, str], folder: Path) -> Path:
    """A folder with prod's file and these settings; numbers as TOML's numbers."""
    lines = [
        f"{name} = {value if _is_number(value) else json.dumps(value)}" for name, value in settings.items()
    ]
    text = (FOLDER / "settings.prod.toml").read_text()
    (folder / "settings.prod.toml").write_text(text + "\n".join(lines))
    return folder


def _is_number(value: str) -> bool:
    return re.fullmatch(r"[0-9.]+", value) is not None


@pytest.fixture(scope="module")
def environments(assembly: Callable[..., Path]) -> Mapping[str, Mapping[str, Any]]:
    """Each function's environment, by its name, of a stage that sets everything."""
    OWN_PROFILES.mkdir(parents=True, exist_ok=True)
    profile = json.loads((ROOT / "layers" / "core" / PROFILES / "assistant.json").read_text())
    (OWN_PROFILES / "helper.json").write_text(json.dumps(profile | {"name": "helper"}))
    chat = Stage("prod", assembly("prod", ALL_CHOSEN))
    found = chat.resources("Chat", "AWS::Lambda::Function").values()
    by_handler = {f["Description"]: f["Environment"]["Variables"] for f in found if "Description" in f}
    return {name: by_handler[spec.description] for name, spec in SPECS.items()}


def test_each_documented_setting_has_its_case() -> None:
    assert documented() == set(ALL_CHOSEN)
    assert len(documented()) > 20


@pytest.mark.parametrize("name", sorted({*NAMES, *ALL_CHOSEN}))
def test_file_and_environment_take_it(name: str, tmp_path: Path) -> None:
    value = ALL_CHOSEN.get(name, "12.5")
    by_file = read_settings("prod", {}, as_file({name: value}, tmp_path))
    by_environment = read_settings("prod", {name: value})
    assert by_file.environment[name] == by_environment.environment[name] == value
    assert by_environment.overriding == {name}


def test_each_deployment_setting_is_documented() -> None:
    guides = "".join(path.read_text() for path in DOCUMENTS if path.name != "CHANGELOG.md")
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", guides)] == []


@pytest.mark.parametrize("name", sorted(ALL_CHOSEN.keys() - ELSEWHERE.keys()))
def test_it_reaches_the_functions_that_use_it(
    name: str, environments: Mapping[str, Mapping[str, Any]]
) -> None:
    users = {function for function, spec in SPECS.items() if name in spec.environment}
    assert users
    for function in users:
        assert environments[function][name] == ALL_CHOSEN[name], function


def test_under_other_names_too(
    environments: Mapping[str, Mapping[str, Any]], assembly: Callable[..., Path]
) -> None:
    for function in ("api", "turn", "mcp"):
        servers = json.loads(environments[function]["MCP_SERVERS"])
        assert {server["url"] for server in servers} >= {
            ALL_CHOSEN["GITHUB_MCP_URL"],
            "https://docs.example/mcp",
        }
    for function in ("search", "ingest", "sweep"):
        assert environments[function]["COURSE_VECTORS"]
    assembled = assembly("prod", ALL_CHOSEN)
    assets = json.loads((assembled / "Chat.assets.json").read_text())["files"].values()
    assert any((assembled / asset["source"]["path"] / PROFILES / "helper.json").is_file() for asset in assets)


def test_a_wrong_amount_is_refused_before_anything_is_deployed(tmp_path: Path) -> None:
    for wrong in ("-1", "1001", "inf", "nan"):
        settings = read_settings("prod", {}, as_file({"DUALTRACK_MAX_COST": wrong}, tmp_path))
        with pytest.raises(ValueError, match="DUALTRACK_MAX_COST: must be dollars from 0"):
            services_from(settings.environment)
