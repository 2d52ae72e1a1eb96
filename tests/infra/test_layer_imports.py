"""Everything that a function may import is in its own layers or in Lambda's runtime.

Locally every function can import every package, so no other test notices one missing from a layer.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from importlib.metadata import Distribution, PathDistribution
from typing import TYPE_CHECKING

import pytest
from dualtrack.tools.registry import IN_HOUSE, MODULES
from dualtrack_stack import layers
from dualtrack_stack.bytecode import PYTHON as LAMBDA_PYTHON
from dualtrack_stack.project.imports import SDK, STANDARD
from dualtrack_stack.roots import function_folders
from dualtrack_stack.stacks.function_specs import SPECS
from packaging.requirements import Requirement

from tests.drivers.documents import ROOT
from tests.drivers.import_graph import is_there, outside_imports
from tests.drivers.lambda_runtime import HOOKS
from tests.drivers.own_layers import alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

CORE = ROOT / "layers" / "core" / "python"
ON_LAMBDA = {
    "python_version": LAMBDA_PYTHON,
    "python_full_version": f"{LAMBDA_PYTHON}.0",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_machine": "aarch64",
    "platform_system": "Linux",
    "sys_platform": "linux",
    "os_name": "posix",
}
"""Environment markers of the functions' platform (PyPA, "Dependency specifiers")."""


def missing_modules(function: str, folders: Sequence[Path]) -> list[str]:
    """The modules that the function imports, at its start or later, and that do not exist on Lambda."""
    code = function_folders()[function]
    imports = {imported for entry in entries(function) for imported in outside_imports(entry, (code, CORE))}
    top = {imported: imported.module.split(".")[0] for imported in imports}
    return sorted(
        str(imported)
        for imported, name in top.items()
        if name not in STANDARD | SDK | HOOKS and not is_there(imported, folders)
    )


def entries(function: str) -> list[Path]:
    """The function's entry files: its handler, the modules of the tools that it runs, a program that it starts."""
    handler = function_folders()[function] / ("app.py" if function == "stream" else "handler.py")
    modules = {MODULES[name] for name, spec in IN_HOUSE.items() if spec.kind == function}
    programs = [CORE / "dualtrack" / "tools" / "graph" / "child.py"] if function == "graph" else []
    return [
        handler,
        *programs,
        *(CORE.joinpath(*module.split(".")).with_suffix(".py") for module in sorted(modules)),
    ]


def packages_of(built: Mapping[str, Path], roles: Iterable[str]) -> list[Path]:
    return [built[role] / "python" for role in roles]


@pytest.mark.parametrize("function", sorted(SPECS))
def test_a_function_finds_every_module_that_it_imports(built: dict[str, Path], function: str) -> None:
    assert missing_modules(function, packages_of(built, SPECS[function].layers)) == []


@pytest.mark.parametrize(
    ("function", "role", "module"),
    [
        ("turn", "arguments", "jsonschema"),
        ("turn", "claude", "anthropic"),
        ("mcp", "arguments", "jsonschema"),
        ("api", "arguments", "jsonschema"),
        ("mcp", "mcp", "mcp"),
        ("search", "search", "voyageai"),
        ("api", "base", "pydantic"),
        ("graph", "graph", "lark"),
        ("graph", "graph", "ladybug"),
        ("graph", "graph", "neo4j"),
        ("abort", "base", "aws_lambda_powertools"),
        ("stream", "stream", "jwt"),
    ],
)
def test_a_missing_layer_is_detected(built: dict[str, Path], function: str, role: str, module: str) -> None:
    """``jsonschema`` in a layer that ``turn`` does not have would fail at the first tool call."""
    others = [name for name in SPECS[function].layers if name != role]
    missing = missing_modules(function, packages_of(built, others))
    assert {name.split(" ")[0].split(".")[0] for name in missing} >= {module}


def test_a_tool_without_its_packages_is_detected(
    built: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = {name: replace(spec, kind="tool") for name, spec in IN_HOUSE.items()}
    monkeypatch.setattr("tests.infra.test_layer_imports.IN_HOUSE", moved)
    assert [
        module
        for module in missing_modules("tool", packages_of(built, SPECS["tool"].layers))
        if module.startswith("numpy")
    ]


@pytest.mark.parametrize("function", sorted(SPECS))
def test_what_the_packages_need_is_in_the_layers_too(built: dict[str, Path], function: str) -> None:
    """Every hard requirement of every distribution, and those of the extras in a requirements file, except what a layer
    excludes.
    """
    roles = SPECS[function].layers
    missing = {
        requirement.split(" needs ")[1] for requirement in unmet(packages_of(built, roles), extras_of(roles))
    }
    assert {_name(Requirement(requirement).name) for requirement in missing} <= excluded_by(roles)


@pytest.mark.parametrize(
    ("function", "module"),
    [("search", "dualtrack.knowledge.voyage"), ("embed", "dualtrack.knowledge.minilm")],
)
def test_no_function_has_or_needs_what_its_layer_excludes(
    built: dict[str, Path], function: str, module: str
) -> None:
    """Requirements that no import needs are excluded; the function loads without them."""
    roles = SPECS[function].layers
    excluded = excluded_by(roles)
    assert excluded
    there = {
        _name(distribution.name)
        for folder in packages_of(built, roles)
        for distribution in _distributions(folder)
    }
    assert not excluded & there
    program = "import os, sys; sys.path += sys.argv.pop(1).split(os.pathsep); __import__(sys.argv[1])"
    command = [*alone(function, program), module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_requirement_is_detected(built: dict[str, Path]) -> None:
    """The layer `claude` needs `base`; an extra counts only if it is requested."""
    assert [
        requirement for requirement in unmet(packages_of(built, ("claude",)), {}) if "pydantic" in requirement
    ]
    both = packages_of(built, ("base", "claude"))
    assert unmet(both, {}) == []
    assert [
        requirement
        for requirement in unmet(both, {"anthropic": {"aiohttp"}})
        if requirement.startswith("anthropic needs aiohttp")
    ]


def unmet(folders: Sequence[Path], extras: Mapping[str, set[str]]) -> list[str]:
    """The requirements that no distribution of the folders meets."""
    there = {
        _name(distribution.name): distribution
        for folder in folders
        for distribution in _distributions(folder)
    }
    needed = [
        (distribution.name, requirement)
        for name, distribution in there.items()
        for requirement in map(Requirement, distribution.requires or ())
        if _applies(requirement, {"", *extras.get(name, ())})
    ]
    return sorted(
        f"{by} needs {requirement}" for by, requirement in needed if not _is_met(requirement, there)
    )


def extras_of(roles: Iterable[str]) -> dict[str, set[str]]:
    """The extras by package that the requirements files of the roles name."""
    named = (requirement for role in roles for requirement in _listed(layers.ROLES[role].requirements))
    return {_name(requirement.name): requirement.extras for requirement in named}


def excluded_by(roles: Iterable[str]) -> set[str]:
    """The packages that the layers leave out although others require them."""
    files = (layers.ROLES[role].excludes for role in roles)
    return {_name(requirement.name) for path in files if path.is_file() for requirement in _listed(path)}


def _listed(path: Path) -> Iterator[Requirement]:
    lines = path.read_text().splitlines()
    return (Requirement(line) for line in lines if line and not line.startswith("#"))


def _distributions(folder: Path) -> Iterator[Distribution]:
    for path in folder.glob("*.dist-info"):
        if (path / "METADATA").is_file():  # its files may be in a lower layer
            yield PathDistribution(path)


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**ON_LAMBDA, "extra": extra}) for extra in extras)


def _is_met(requirement: Requirement, there: Mapping[str, Distribution]) -> bool:
    name = _name(requirement.name)
    if name not in there:
        return name.replace("-", "_") in SDK
    return requirement.specifier.contains(there[name].version, prereleases=True)


def _name(name: str) -> str:
    """The normalised name (PyPA, "Name normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()
