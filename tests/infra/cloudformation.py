"""An account's CloudFormation as a second deployment meets it: templates in, AWS's refusals out.

Resources are names and resolved properties; nothing is behind them. Each rule has its source beside it (UG: AWS
CloudFormation User Guide, TR: AWS CloudFormation Template Reference). What replaces a resource, and what names it, is
in AWS's own resource schemas, which cfn-lint brings (``createOnlyProperties``, ``primaryIdentifier``).
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.infra.rules.names import GLOBAL_NAMES, name_of
from tests.infra.rules.registry import many, references

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    Template = Mapping[str, Any]

HOME: Final = "us-east-1"
CAN_BE_FULL: Final = frozenset({"AWS::S3::Bucket", "AWS::S3Vectors::VectorBucket"})
IN_A_NETWORK: Final = frozenset({"AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"})


class Refused(Exception):
    """What AWS says; the stack has been rolled back."""


@dataclass(frozen=True)
class Resource:
    """``name``: its physical id. ``properties``: resolved. ``kept``, ``kept_if_replaced``: its policies."""

    key: str
    kind: str
    name: str
    properties: Any
    kept: str = "Delete"
    kept_if_replaced: str = "Delete"


@dataclass
class Stack:
    """``resources`` by logical id, in the order in which they were made."""

    status: str = "CREATE_COMPLETE"
    template: Template = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    exports: dict[str, Any] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()


def stacks_of(assembly: Path) -> dict[str, Template]:
    """The templates of an assembly by the stacks' names, in the order in which the CDK deploys them."""
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    order = TopologicalSorter({key: value.get("dependencies", ()) for key, value in artifacts.items()})
    return {
        artifacts[key]["properties"]["stackName"]: json.loads(
            (assembly / artifacts[key]["properties"]["templateFile"]).read_text()
        )
        for key in order.static_order()
        if artifacts[key]["type"] == "aws:cloudformation:stack"
    }


@dataclass
class Account:
    """``stacks`` and ``taken`` names by region; ``left``: what no stack has any more. ``published``: for each function
    (version's name, the function's properties) of every version that is there. ``full``: names of buckets with
    something in them. ``alarming``: kinds of resources whose change fails.
    """

    stacks: dict[tuple[str, str], Stack] = field(default_factory=dict)
    taken: dict[tuple[str, ...], str] = field(default_factory=dict)
    left: dict[str, Resource] = field(default_factory=dict)
    published: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    full: set[str] = field(default_factory=set)
    alarming: Collection[str] = ()
    _numbers: Iterator[int] = field(default_factory=count)

    def deploy(self, stacks: Mapping[str, Template], region: str = HOME) -> list[str]:
        """Deploy one after another, as the CDK does; the names of those that changed. Raises `Refused`."""
        return [name for name, template in stacks.items() if self._deploy(name, template, region)]

    def _deploy(self, name: str, template: Template, region: str) -> bool:
        stack = self.stacks.get((region, name))
        if stack and stack.status in ("ROLLBACK_COMPLETE", "DELETE_FAILED"):
            # UG, "Stack status codes": only a delete operation can be performed
            raise Refused(f"Stack {name} is in {stack.status} state and can not be updated.")
        if stack and all(stack.template.get(part) == template.get(part) for part in ("Resources", "Outputs")):
            # TR, "Metadata": "During a stack update, you can't update the Metadata section by itself. You can update it
            # only when you include changes that add, modify, or delete resources."
            return False
        self._update(name, stack, template, region)
        return True

    def _update(self, name: str, old: Stack | None, template: Template, region: str) -> None:
        new = Stack("UPDATE_COMPLETE" if old else "CREATE_COMPLETE", template)
        made: list[Resource] = []
        try:
            new.imports = frozenset(_found("Fn::ImportValue", template))
            for key in _in_order(template["Resources"]):
                self._put(key, old, new, made, region)
            new.exports = self._exports(new, region)
            if old:
                self._check_exports(name, old.exports, new.exports, region)
        except Refused:
            for resource in reversed(made):
                self._remove(
                    resource, region, "Delete" if resource.kept == "RetainExceptOnCreate" else resource.kept
                )
            status = "UPDATE_ROLLBACK_COMPLETE" if old else "ROLLBACK_COMPLETE"
            kept = old or Stack(template=template)
            self.stacks[region, name] = Stack(
                status, kept.template, kept.resources, kept.exports, kept.imports
            )
            raise
        self.stacks[region, name] = new
        names = {resource.name for resource in new.resources.values()}
        for resource in reversed((old or new).resources.values()):
            if (
                resource.name not in names
            ):  # UG, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": after the rest, never undone
                replaced = resource.key in new.resources
                self._remove(resource, region, resource.kept_if_replaced if replaced else resource.kept)

    def _put(self, key: str, old: Stack | None, new: Stack, made: list[Resource], region: str) -> None:
        template = new.template["Resources"][key]
        properties = self._resolved(template.get("Properties", {}), new, region)
        before = old.resources.get(key) if old else None
        policies = (template.get("DeletionPolicy", "Delete"), template.get("UpdateReplacePolicy", "Delete"))
        stays = before and before.kind == template["Type"] and not _replaces(before, properties)
        name = before.name if before and stays else f"{key}-{next(self._numbers):05}"
        resource = Resource(key, template["Type"], name, properties, *policies)
        if resource != before and resource.kind in self.alarming:
            raise Refused(f"{key}: an alarm was raised")
        if not stays:
            self._create(resource, new, region)
            made.append(resource)
        new.resources[key] = resource

    def _create(self, resource: Resource, stack: Stack, region: str) -> None:
        if name := _fixed_name(resource, region):
            # UG, "Update behaviors": a resource with a custom name cannot be replaced; nor made beside one of its name
            if name in self.taken:
                raise Refused(f"{resource.key}: {name[2]} already exists in {self.taken[name]}")
            self.taken[name] = resource.name
        if resource.kind == "AWS::Lambda::Version":
            self._publish(resource, stack)

    def _publish(self, version: Resource, stack: Stack) -> None:
        """Lambda API, PublishVersion: "Lambda doesn't publish a version if the function's configuration and code
        haven't changed since the last version"; CloudFormation then fails (FACTS: seen in public reports)."""
        called = version.properties["FunctionName"]
        (function,) = (found for found in stack.resources.values() if found.name == called)
        published = self.published[called]
        code = json.dumps(function.properties, sort_keys=True)
        if published and published[-1][1] == code:
            raise Refused(
                f"{version.key}: A version for this Lambda function exists ( {len(published)} )."
                " Modify the function to create a new version."
            )
        published.append((version.name, code))

    def _check_exports(self, name: str, old: dict[str, Any], new: dict[str, Any], region: str) -> None:
        """TR, "Fn::ImportValue": "After another stack imports an output value, you can't delete the stack that is
        exporting the output value or modify the exported output value."
        """
        for export, value in old.items():
            users = [
                user
                for (there, user), stack in self.stacks.items()
                if there == region and user != name and export in stack.imports
            ]
            if users and new.get(export) != value:
                done = "updated" if export in new else "deleted"
                raise Refused(f"Export {export} cannot be {done} as it is in use by {', '.join(users)}")

    def _remove(self, resource: Resource, region: str, policy: str) -> bool:
        """TR, "DeletionPolicy": Retain keeps it, also after a rollback; RetainExceptOnCreate not after the rollback of
        its creation. Whether nothing is in the way."""
        is_free = policy == "Delete" and self._can_go(resource)
        if not is_free:
            self.left[resource.name] = resource
            return policy != "Delete"
        self.taken = {key: name for key, name in self.taken.items() if name != resource.name}
        self.published.pop(resource.name, None)
        return True

    def _can_go(self, resource: Resource) -> bool:
        """S3 API, DeleteBucket and DeleteVectorBucket: only empty ones. Lambda Developer Guide, "Giving functions
        access to a VPC": a network interface stays until no function or published version names its subnet and group.
        """
        if resource.kind in CAN_BE_FULL:
            return resource.name not in self.full or _empties_itself(resource)
        codes = (code for published in self.published.values() for _, code in published)
        return resource.kind not in IN_A_NETWORK or not any(f'"{resource.name}' in code for code in codes)

    def delete(self, name: str, region: str = HOME) -> None:
        """Delete a stack. Raises `Refused`; what could go is gone then (DELETE_FAILED)."""
        stack = self.stacks[region, name]
        self._check_exports(name, stack.exports, {}, region)
        stuck = [
            resource
            for resource in reversed(stack.resources.values())
            if not self._remove(resource, region, resource.kept)
        ]
        if stuck:
            stack.status, stack.resources = "DELETE_FAILED", {found.key: found for found in stuck}
            raise Refused(f"{name}: {', '.join(found.key for found in stuck)} cannot be deleted")
        del self.stacks[region, name]

    def _exports(self, stack: Stack, region: str) -> dict[str, Any]:
        outputs = stack.template.get("Outputs", {}).values()
        return {
            output["Export"]["Name"]: self._resolved(output["Value"], stack, region)
            for output in outputs
            if "Export" in output
        }

    def _resolved(self, value: Any, stack: Stack, region: str) -> Any:
        if not isinstance(value, dict):
            items = value if isinstance(value, list) else None
            return value if items is None else [self._resolved(item, stack, region) for item in items]
        if "Ref" in value:
            found = stack.resources.get(value["Ref"])
            return found.name if found else {"AWS::Region": region}.get(value["Ref"], value["Ref"])
        if "Fn::GetAtt" in value:
            return _attribute(stack, *value["Fn::GetAtt"])
        resolved = {key: self._resolved(item, stack, region) for key, item in value.items()}
        if "Fn::ImportValue" in resolved:
            return self._imported(resolved["Fn::ImportValue"], region)
        between, parts = resolved.get("Fn::Join", ("", [None]))
        return between.join(parts) if all(isinstance(part, str) for part in parts) else resolved

    def _imported(self, export: str, region: str) -> Any:
        for (there, _), stack in self.stacks.items():
            if there == region and export in stack.exports:
                return stack.exports[export]
        raise Refused(f"No export named {export} found.")


def _attribute(stack: Stack, key: str, name: str) -> str:
    """TR, "AWS::StepFunctions::StateMachine": a revision is a snapshot of the definition; others stay as they are."""
    resource = stack.resources[key]
    content = json.dumps(resource.properties) if name == "StateMachineRevisionId" else ""
    return f"{resource.name}.{name}{content}"


def _in_order(resources: Mapping[str, Any]) -> Iterable[str]:
    """Resources after those that they name."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for key, resource in resources.items():
        order.add(key, *({*references(resource), *many(resource.get("DependsOn", []))} & resources.keys()))
    return order.static_order()


def _found(function: str, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _found(function, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == function:
                yield item
            else:
                yield from _found(function, item)


@cache
def _schema(kind: str) -> Mapping[str, Any]:
    is_custom = kind.startswith("Custom::") or kind == "AWS::CDK::Metadata"
    return {} if is_custom else dict(PROVIDER_SCHEMA_MANAGER.get_resource_schema(HOME, kind).schema)


def _replaces(before: Resource, properties: Any) -> bool:
    """UG, "Update behaviors of stack resources": another value of a create-only property is a new resource."""
    schema = _schema(before.kind)
    pointers = [*schema.get("createOnlyProperties", ()), *schema.get("conditionalCreateOnlyProperties", ())]
    paths = [pointer.split("/")[2:] for pointer in pointers]
    return any(_at(before.properties, path) != _at(properties, path) for path in paths)


def _at(value: Any, path: list[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else value
    return value


def _fixed_name(resource: Resource, region: str) -> tuple[str, ...] | None:
    """(region, kind, name) of what has a name of the template's own; the region is empty for a global name."""
    if path := GLOBAL_NAMES.get(resource.kind):
        name = name_of({"Properties": resource.properties}, path)
        return ("", resource.kind, json.dumps(name)) if name else None
    identifier = [pointer.split("/")[2:] for pointer in _schema(resource.kind).get("primaryIdentifier", ())]
    names = [_at(resource.properties, path) for path in identifier]
    is_named = names and None not in names and all(path[0] in resource.properties for path in identifier)
    return (region, resource.kind, json.dumps(names)) if is_named else None


def _empties_itself(resource: Resource) -> bool:
    """The CDK's custom resource empties a bucket with this tag before it goes; the page's removes its own files."""
    tags = {tag["Key"]: tag["Value"] for tag in resource.properties.get("Tags", [])}
    return "aws-cdk:auto-delete-objects" in tags or any("aws-cdk:cr-owned" in key for key in tags)
