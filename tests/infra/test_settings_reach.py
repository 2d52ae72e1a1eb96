"""A setting is one entry of `dualtrack.settings`: a file and the environment take it, and it reaches what uses it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.checked_settings import WrongSettings, allowed, checked
from dualtrack.models.provider import FIRST
from dualtrack.settings import ADMISSION, DEFAULTS, INDEXING, TELLING, Setting, declared, keys, settings_from
from dualtrack_stack.local.synth import cache
from dualtrack_stack.project.function import NAME as OWN
from dualtrack_stack.project.model import PROFILES
from dualtrack_stack.roots import PROJECT_FILE
from dualtrack_stack.settings import BadSettings, read_settings
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.documents import ROOT
from tests.drivers.other_settings import another, in_a_file
from tests.drivers.templates import Stage, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OWN_PROFILES: Final = cache() / "profiles-of-a-test"
ALL_CHOSEN: Final[dict[str, str]] = {
    **{name: another(entry) for name, entry in in_a_file().items() if not name.startswith("GITHUB_MCP_")},
    "GITHUB_MCP_URL": "https://mcp.example",
    "DUALTRACK_PROFILES": str(OWN_PROFILES),
    "DUALTRACK_PROVIDER_BEFORE": FIRST,
}
"""A value for each that is not its default, with which every key is used; of the two ways to GitHub's tools the server
elsewhere."""

USED: Final = sorted(
    name for name, entry in declared().items() if entry.declared.used_by and not entry.declared.is_local
)


def as_file(settings: Mapping[str, str], folder: Path) -> Path:
    """A folder with a project's file of these settings; numbers as TOML's numbers."""
    lines = [
        f"{name} = {value if _is_number(value) else json.dumps(value)}" for name, value in settings.items()
    ]
    (folder / PROJECT_FILE).write_text("\n".join(["[stage.prod.settings]", *lines]))
    return folder


def _is_number(value: str) -> bool:
    return re.fullmatch(r"[0-9.]+", value) is not None


@pytest.fixture(scope="module")
def chat(assembly: Callable[..., Path]) -> Stage:
    """A stage that sets everything."""
    OWN_PROFILES.mkdir(parents=True, exist_ok=True)
    profile = json.loads((ROOT / "layers" / "core" / PROFILES / "assistant.json").read_text())
    (OWN_PROFILES / "helper.json").write_text(json.dumps(profile | {"name": "helper"}))
    return Stage("prod", assembly("prod", ALL_CHOSEN))


@pytest.fixture(scope="module")
def environments(chat: Stage) -> Mapping[str, Mapping[str, Any]]:
    """Each function's environment, by its name; a project without tools of its own has no function for them."""
    found = chat.resources("Chat", "AWS::Lambda::Function").values()
    by_handler = {f["Description"]: f["Environment"]["Variables"] for f in found if "Description" in f}
    return {name: by_handler[spec.description] for name, spec in SPECS.items() if name != OWN}


@pytest.mark.parametrize("name", sorted(in_a_file()))
def test_file_and_environment_take_it(name: str, tmp_path: Path) -> None:
    value = ALL_CHOSEN.get(name, "12.5")
    needed = {"DUALTRACK_GRAPH_URL": ALL_CHOSEN["DUALTRACK_GRAPH_URL"]} if name.endswith("ENGINE") else {}
    by_file = read_settings("prod", needed, as_file({name: value}, tmp_path))
    by_environment = read_settings("prod", {name: value, **needed})
    assert by_file.given[name] == by_environment.given[name] == value
    assert by_environment.overriding == {name, *needed}
    field = declared()[name].field
    chosen = getattr(by_file.checked(), field)
    assert chosen == getattr(by_environment.checked(), field) != getattr(DEFAULTS, field)


@pytest.mark.parametrize("name", USED)
def test_it_reaches_the_functions_that_use_it(
    name: str, environments: Mapping[str, Mapping[str, Any]]
) -> None:
    """As the function itself reads it, with its type; of a key the parameter's name."""
    entry = declared()[name]
    expected = (
        f"/dualtrack-prod/{entry.stored}" if entry.is_key else getattr(checked(ALL_CHOSEN), entry.field)
    )
    assert expected != entry.default
    for function in _users_of(entry):
        assert getattr(settings_from(environments[function]), entry.field) == expected, function


def test_a_function_has_no_other(environments: Mapping[str, Mapping[str, Any]]) -> None:
    operators = {declared()[name].field.upper(): _users_of(declared()[name]) for name in USED}
    for function, environment in environments.items():
        assert [name for name in environment if function not in operators.get(name, (function,))] == []


@pytest.mark.parametrize("name", sorted(keys()))
def test_a_key_can_be_read_by_the_functions_that_use_it_alone(name: str, chat: Stage) -> None:
    parameter = f":parameter/dualtrack-prod/{name}"
    policies = chat.resources("Chat", "AWS::IAM::Policy").items()
    readers = {role.split("RoleDefaultPolicy")[0] for role, policy in policies if parameter in _named(policy)}
    assert readers == {SPECS[function].construct_id for function in _users_of(keys()[name])}


def _users_of(entry: Setting) -> set[str]:
    return {name for name, spec in SPECS.items() if {*spec.in_settings} & {*entry.declared.used_by}}


def _named(policy: Any) -> set[str]:
    """The ends of the resources of a policy."""
    statements = policy["PolicyDocument"]["Statement"]
    listed = [s["Resource"] if isinstance(s["Resource"], list) else [s["Resource"]] for s in statements]
    return {f":parameter{readable(arn).rpartition(':parameter')[2]}" for arns in listed for arn in arns}


def test_under_other_names_too(environments: Mapping[str, Mapping[str, Any]], chat: Stage) -> None:
    servers = json.loads(environments["mcp"]["MCP_SERVERS"])
    assert {server["url"] for server in servers} >= {
        ALL_CHOSEN["GITHUB_MCP_URL"],
        "https://docs.example/mcp",
    }
    for function in ("search", "ingest", "sweep"):
        assert environments[function]["COURSE_VECTORS"]
    assets = json.loads((chat.folder / "Chat.assets.json").read_text())["files"].values()
    assert any(
        (chat.folder / asset["source"]["path"] / PROFILES / "helper.json").is_file() for asset in assets
    )


def wrong() -> list[tuple[str, str]]:
    """Values that each entry refuses."""
    found = []
    for name, entry in in_a_file().items():
        if entry.type in ("int", "float"):
            bounds = ((entry.declared.least or 0) - 1, (entry.declared.most or 0) + 1)
            texts = (*(str(bound) for bound in bounds), "inf", "nan", "many", "٣")
            found += [(name, text) for text in (*texts, "3.5") if (entry.type, text) != ("float", "3.5")]
        elif entry.declared.form or allowed(entry):
            found += [(name, "§"), (name, " ")]
    return found


@pytest.mark.parametrize(("name", "value"), wrong())
def test_a_wrong_value_is_refused_before_anything_is_deployed(name: str, value: str, tmp_path: Path) -> None:
    """With its name, the value, where it was set and what is expected."""
    with pytest.raises(WrongSettings, match=rf"^{name} = .*\(environment\): must be "):
        checked({name: value})
    file = as_file({name: value}, tmp_path)
    with pytest.raises(BadSettings, match=rf"^{name} = .*\(dualtrack\.toml:2\): must be "):
        read_settings("prod", {}, file)


def test_every_wrong_one_has_its_line() -> None:
    with pytest.raises(WrongSettings) as refused:
        checked(
            {
                "DUALTRACK_MAX_COST": "much",
                "WAF": "yes",
                "MCP_SERVERS": "[{}]",
                "DUALTRACK_GRAPH_ENGINE": "bolt",
            }
        )
    assert [line.split(" ")[0] for line in str(refused.value).splitlines()] == [
        "DUALTRACK_MAX_COST",
        "DUALTRACK_GRAPH_URL",
        "MCP_SERVERS",
        "WAF",
    ]


def test_each_is_used_by_functions_that_there_are() -> None:
    named = {function for name in USED for function in declared()[name].declared.used_by}
    assert named <= {*SPECS, ADMISSION, INDEXING, TELLING}
