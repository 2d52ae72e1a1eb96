"""Reading synthesised templates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualtrack_stack.github_mcp import VERSION

if TYPE_CHECKING:
    from pathlib import Path

STACKS = ("Data", "Identity", "Chat")
WITH_MCP = {
    "GITHUB_MCP_IMAGE": f"registry.example/github/github-mcp-server:{VERSION}@sha256:{'a' * 64}",
    "GITHUB_MCP_PROBE_IMAGE": f"registry.example/busybox:1.37@sha256:{'b' * 64}",
}
"""Settings of a stage with GitHub's MCP server in the account."""


@dataclass(frozen=True)
class Stage:
    """One synthesised stage: ``folder`` holds its assembly."""

    name: str
    folder: Path

    def template(self, stack: str) -> dict[str, Any]:
        """The template of ``Data``, ``Identity`` or ``Chat``."""
        loaded: dict[str, Any] = json.loads((self.folder / f"{stack}.template.json").read_text())
        return loaded

    def resources(self, stack: str, kind: str) -> dict[str, dict[str, Any]]:
        """Properties by logical id."""
        resources = self.template(stack)["Resources"].items()
        return {key: value.get("Properties", {}) for key, value in resources if value["Type"] == kind}

    def all_resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties by logical id, of all stacks."""
        return {key: value for stack in STACKS for key, value in self.resources(stack, kind).items()}


def readable(value: Any) -> str:
    """``Fn::GetAtt``, ``Ref``, ``Fn::ImportValue`` and ``Fn::Join`` flattened to text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        ((name, argument),) = value.items()
        if name == "Fn::Join":
            return str(argument[0]).join(readable(part) for part in argument[1])
        if name == "Fn::GetAtt":
            return ".".join(argument)
        return readable(argument)
    raise TypeError(value)
