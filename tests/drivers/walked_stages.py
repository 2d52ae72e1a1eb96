"""Stages as they are deployed one after another, with this or that setting switched: their templates.

Synthesised in this process without building a layer, and kept by their content, because a walk takes several.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.local.synth import content_key

from tests.drivers.other_settings import another, in_a_file
from tests.drivers.synthesised import empty_app, kept
from tests.drivers.templates import WITH_MCP
from tests.infra.cloudformation import stacks_of
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dualtrack_stack.project.model import Project
    from dualtrack_stack.settings import Configuration

    Stacks = dict[str, Mapping[str, Any]]

TOGETHER: Final[Mapping[str, dict[str, str]]] = MappingProxyType(
    {
        "graph's server": {
            "DUALTRACK_GRAPH_ENGINE": "bolt",
            "DUALTRACK_GRAPH_URL": ALL_SET["DUALTRACK_GRAPH_URL"],
            "DUALTRACK_GRAPH_USER": "reader",
        },
        "Bedrock": {
            "DUALTRACK_PROVIDER": "bedrock",
            "DUALTRACK_PROVIDER_BEFORE": "anthropic",
            "BEDROCK_BASE_URL": "https://bedrock-mantle.eu-west-1.api.aws/anthropic",
        },
        "profiles": {"DUALTRACK_PROFILES": "profiles"},
        "GitHub's MCP server": WITH_MCP,
        "OpenID Connect": {
            **{name: value for name, value in ALL_SET.items() if name.startswith("OIDC")},
            "OIDC_NAME": "Login",
        },
        "SAML": {"SAML_METADATA_URL": ALL_SET["SAML_METADATA_URL"], "SAML_NAME": "Directory"},
        "SES": {"SES_FROM": ALL_SET["SES_FROM"], "SES_IDENTITY": "example.org"},
        "domain": {name: ALL_SET[name] for name in ("DOMAIN", "CERTIFICATE_ARN")},
    }
)
"""Settings that only mean something together."""

SETTINGS: Final[Mapping[str, dict[str, str]]] = MappingProxyType(
    {
        **TOGETHER,
        **{
            name: {name: another(entry)}
            for name, entry in in_a_file().items()
            if not any(name in settings for settings in TOGETHER.values())
        },
    }
)
"""Every setting that a stage's file may have."""

VALUES: Final = frozenset(
    name
    for name in SETTINGS
    if name.startswith(("ANTHROPIC_", "CONTEXT7_", "DUALTRACK_", "VOYAGE_"))
    and name != "DUALTRACK_COURSE_INDEX"
)
"""Settings of one name that only functions read: they change no resource but functions."""

SWITCHES: Final[Mapping[str, dict[str, str]]] = MappingProxyType(
    {
        **{name: settings for name, settings in SETTINGS.items() if name not in VALUES},
        "values": {name: SETTINGS[name][name] for name in sorted(VALUES)},
    }
)
"""`SETTINGS` as they are switched: `VALUES` at once."""

STAGE: Final[Mapping[str, dict[str, Any]]] = MappingProxyType(
    {
        "no page": {"page": False},
        "no alarms": {"alarms": False, "release": "at_once"},
        "releases in place": {"release": "in_place"},
        "linear releases": {"release": "linear", "release_percent": 10, "release_minutes": 5},
        "data not kept": {"keep_data": False, "empties_buckets": True},
        "no second factor": {"mfa_required": False, "password_sign_in": True},
        "a callback": {"callback_urls": ("http://localhost:8000/",), "token_hours": 2},
        "limits": {"request_rate": 10, "request_burst": 20, "reserved_concurrency": {"abort": 5}},
        "logs": {"log_retention_days": 30, "log_level": "DEBUG"},
        "snapshots": {"snap_start": ("api",)},
        "words": {"upgrade_message": "Ask.", "ledger_retention_days": 30},
    }
)
"""Every field of `dualtrack_stack.stages.StageSettings` with another value than prod's."""


@dataclass(frozen=True)
class Variant:
    """A stage with some settings, with some of its own fields changed, and with a project's tools."""

    stage: str = "prod"
    settings: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    project: Project | None = None

    def read(self) -> Configuration:
        """The settings as a deployment from this environment reads them."""
        from dualtrack_stack.settings import read_settings

        read = read_settings(self.stage, self.settings)
        return replace(read, stage=replace(read.stage, built_layers=False, **self.changes))

    def stacks(self) -> Stacks:
        """The templates by the stacks' names, in the order of their deployment."""
        return stacks_of(self.folder())

    def folder(self) -> Path:
        """The folder of the assembly."""
        inputs = json.dumps([self.stage, dict(self.settings), dict(self.changes), repr(self.project)])
        digest = hashlib.sha256(inputs.encode()).hexdigest()[:16]
        return kept(f"walked-{_sources_key(self.stage)}-{digest}", self._synthesise)

    def _synthesise(self, folder: Path) -> None:
        from dualtrack_stack.app import build_deployed

        app = empty_app(folder, self.stage)
        build_deployed(app, self.read(), self.project)
        app.synth()


@functools.cache
def _sources_key(stage: str) -> str:
    """`content_key`, once a run: it reads every source file."""
    return content_key(stage)


def with_everything(stage: str = "prod", **changes: Any) -> Variant:
    """All settings at once; of the two ways to GitHub's tools the server in the account."""
    together = {name: value for settings in SETTINGS.values() for name, value in settings.items()}
    del together["GITHUB_MCP_URL"]
    return Variant(stage, together, changes)
