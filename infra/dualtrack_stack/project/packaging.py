"""What the function of a project's tools is made of on AWS: its code, and one layer with all packages that it imports.

The layer has the project's ``dependencies``, without dualtrack and its requirements, and what the library itself needs
(layers/base), resolved together at the versions of the project's lock: no package is there twice.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dualtrack_stack import bytecode, layers
from dualtrack_stack.layers import LAMBDA, LayerTarget, NoPackageIndex
from dualtrack_stack.project.function import CODE, own_code
from dualtrack_stack.project.imports import missing_imports
from dualtrack_stack.project.model import BadProject, packaged
from dualtrack_stack.roots import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.project.model import Project

_BASE: Final = layers.ROLES["base"]
_OF_TOOLS: Final = ("--no-dev", "--prune", "dualtrack")
_PINNED: Final = re.compile(r"^([A-Za-z0-9][\w.-]*)")
_NO_WHEEL: Final = re.compile(r"Because (\S+?)==(\S+) has no (?:usable )?wheels")
"""How uv says that a package cannot be installed without building it."""


def has_packages(project: Project) -> bool:
    """Whether its function needs a layer of its own: the project has dependencies. Raises `BadProject`."""
    return bool(_locked(project.root, *_OF_TOOLS))


def build_layer(project: Project, target: LayerTarget = LAMBDA) -> Path:
    """The folder of the layer (``python/`` inside); without dependencies that of ``base``. Raises `BadProject`, also
    for a tool that imports what the layer does not have."""
    locked = _locked(project.root, *_OF_TOOLS)
    built = _built(project.root, locked, target) if locked else layers.build(_BASE, target)
    if missing := missing_imports(project.root, built / "python"):
        raise BadProject("\n".join(missing))
    return built


def _built(root: Path, locked: str, target: LayerTarget) -> Path:
    versions = _versions(root)
    content = [_BASE.requirements.read_bytes(), versions.encode(), locked.encode(), *_wheels(root, locked)]
    built = layers.layers_folder() / f"own-{_digest(target, *content)}"
    if not built.is_dir():
        layers.publish(built, lambda folder: _install(root, locked, versions, target, folder))
    return built


def build_code(project: Project) -> Path:
    """The folder of its code: the handler, and the project's tools beside it."""
    tools, ours = own_code(project.root), OURS / CODE
    content = [path.read_bytes() for path in sorted(ours.glob("*.py"))]
    content += [part for name, data in tools.items() for part in (name.as_posix().encode(), data)]
    built = layers.layers_folder() / f"own_code-{_digest(LAMBDA, *content)}"

    def fill(folder: Path) -> None:
        shutil.copytree(ours, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for name, data in tools.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    return built if built.is_dir() else layers.publish(built, fill)


def build_function(project: Project) -> Path:
    """The folder of its code. Raises `BadProject` if it is larger than Lambda takes with its layers: which package
    weighs most."""
    layer, code = build_layer(project), build_code(project)
    total = sum(map(layers.unzipped_bytes, (layer, code, layers.build_core(packaged(project)))))
    if total <= layers.UNZIPPED_LIMIT:
        return code
    sizes = {path.name: layers.unzipped_bytes(path) for path in (layer / "python").iterdir() if path.is_dir()}
    largest = max(sizes, key=sizes.__getitem__, default="")
    raise BadProject(
        f"pyproject.toml: the tools and their packages take {total / 1e6:.0f} MB, and Lambda takes"
        f" {layers.UNZIPPED_LIMIT / 1e6:.0f} MB: leave something out; {largest} is the largest with"
        f" {sizes.get(largest, 0) / 1e6:.0f} MB"
    )


def _locked(root: Path, *options: str) -> str:
    """What the project's lock has, a requirement with its version a line. Raises `BadProject`."""
    if not (root / "pyproject.toml").is_file():
        return ""
    finished = layers.tried(
        "uv", "export", "--quiet", "--locked", *options,
        "--no-hashes", "--no-emit-project", "--no-header", "--no-annotate",
        cwd=root,
    )  # fmt: skip
    if finished.returncode == 0:
        return finished.stdout
    if "lockfile" in finished.stderr:
        said = "there is none" if not (root / "uv.lock").is_file() else "it is not that of pyproject.toml"
        raise BadProject(f"uv.lock: {said}: run uv lock, and commit it")
    raise BadProject(f"pyproject.toml: uv cannot read the dependencies: {' '.join(finished.stderr.split())}")


def _wheels(root: Path, locked: str) -> Iterator[bytes]:
    """The wheels that lie in the project. Raises `BadProject` for a dependency that is a folder."""
    for line in locked.splitlines():
        path = line.partition(" ;")[0].removeprefix("-e ").strip()
        if path.startswith((".", "/", "file:")):
            if not path.endswith(".whl"):
                raise BadProject(
                    f"pyproject.toml: {path} is a folder, and the function's layer takes wheels alone:"
                    f" run uv build --wheel {path}, and name the wheel as its source"
                )
            yield (root / path.removeprefix("file://")).read_bytes()


def _install(root: Path, locked: str, versions: str, target: LayerTarget, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirements, constraints = Path(scratch, "requirements.txt"), Path(scratch, "constraints.txt")
        requirements.write_text(locked, encoding="utf-8")
        constraints.write_text(versions, encoding="utf-8")
        finished = layers.tried(
            "uv", "pip", "install", "--quiet", "--no-config",
            "--requirements", str(_BASE.requirements),
            "--requirements", str(requirements),
            "--constraints", str(constraints),
            "--target", str(folder / "python"),
            *layers.options_of(target),
            cwd=root,
        )  # fmt: skip
    if finished.returncode:
        raise _refusal(finished.stderr)
    layers.clean(folder / "python")
    if target == LAMBDA:
        bytecode.compile_folder(folder / "python")


def _versions(root: Path) -> str:
    """The versions of the project's lock, with which its tools are tested; ours of what it leaves open."""
    theirs = [line for line in _locked(root).splitlines() if _name(line) and "==" in line]
    named = set(map(_name, theirs))
    ours = layers.VERSIONS.read_text(encoding="utf-8").splitlines()
    return "\n".join([*theirs, *(line for line in ours if _name(line) not in named)])


def _name(requirement: str) -> str:
    found = _PINNED.match(requirement)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _refusal(problem: str) -> Exception:
    if found := _NO_WHEEL.search(problem):
        return BadProject(
            f"pyproject.toml: {found[1]} {found[2]} has no wheel for Lambda (Python {bytecode.PYTHON}, Linux on"
            " arm64): take another package, or a version that has one"
        )
    if layers.is_unreachable(problem):
        return NoPackageIndex(problem)
    return BadProject(f"pyproject.toml: uv cannot install the dependencies: {' '.join(problem.split())}")


def _digest(target: LayerTarget, *content: bytes) -> str:
    digest = hashlib.sha256(repr((layers.RECIPE, target.platform, target.python)).encode())
    for part in content:
        digest.update(f"{len(part)}\n".encode())
        digest.update(part)
    return digest.hexdigest()[:16]
