"""Lambda layers, built by uv without Docker, cached by their content (DESIGN 2.13).

A layer is resolved for Lambda's platform (arm64, Python 3.13) with the versions of ``layers/versions.txt``. Files of
the layers beneath it are left out, and bytecode is shipped (`dualtrack_stack.bytecode`).

A layer is the same wherever it is built: it always has its bytecode, no installer's notes about the machine, and fixed
file modes; its name and its asset's hash are a hash of its inputs. So a deployment from CI after one from a laptop
changes no function.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack_stack import bytecode
from dualtrack_stack.roots import LIBRARY, OURS, PLUGINS, build_folder, project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

VERSIONS: Final = OURS / "layers" / "versions.txt"
"""Every package that an extra needs, at its version in ``uv.lock`` (``just versions`` writes it)."""

INSIDE: Final = Path("python", "dualtrack")
"""The library's folder in the core layer."""

TESTING: Final = "testing.py"
"""The library's module that no layer has: it is for tests, and imports this package."""


@dataclass(frozen=True, slots=True)
class LayerTarget:
    """What packages are resolved for: a Python version and a platform as uv names it, None for this machine's."""

    python: str
    platform: str | None = None


# Amazon Linux 2023; an older tag takes older wheels
LAMBDA: Final = LayerTarget(bytecode.PYTHON, "aarch64-manylinux_2_34")
HERE: Final = LayerTarget(f"{sys.version_info[0]}.{sys.version_info[1]}")
"""This machine, on which a test can run a function with its own layers alone."""

UNZIPPED_LIMIT: Final = 262_144_000
"""Bytes a function and all its layers may take unzipped (AWS Lambda quota: 250 MiB)."""

RECIPE: Final = "3"  # part of the cache key: raise it when the way of building changes


class NoPackageIndex(RuntimeError):
    """The packages of a layer could not be fetched."""


_UNREACHABLE: Final = (
    "dns error",
    "failed to fetch",
    "error sending request",
    "connection refused",
    "timed out",
)


@dataclass(frozen=True, slots=True)
class LayerRole:
    """A dependency layer: its folder (``parent``/``name``) and the layers it requires."""

    name: str
    above: tuple[str, ...] = ()
    parent: Path = OURS / "layers"

    @property
    def requirements(self) -> Path:
        return self.parent / self.name / "requirements.txt"

    @property
    def excludes(self) -> Path:
        """Packages that others require and the functions never import, if the layer leaves any out."""
        return self.parent / self.name / "excludes.txt"

    @property
    def files(self) -> list[Path]:
        """Everything that determines the layer's content."""
        return [path for path in (self.requirements, self.excludes) if path.is_file()]


ROLES: Final[Mapping[str, LayerRole]] = MappingProxyType(
    {
        role.name: role
        for role in (
            LayerRole("base"),
            LayerRole("arguments", above=("base",)),
            LayerRole("claude", above=("base",)),
            LayerRole("search", above=("base", "claude")),
            LayerRole("documents", above=("base", "claude", "search")),
            LayerRole("mcp", above=("base", "arguments")),
            LayerRole("graph", above=("base",)),
            LayerRole("embed", above=("base",)),
            LayerRole("stream"),
            *(
                LayerRole(path.parent.name, ("base",), PLUGINS)
                for path in sorted(PLUGINS.glob("*/requirements.txt"))
            ),
        )
    }
)


def library_files() -> dict[Path, Path]:
    """The library's files that functions may import, by their paths in the core layer."""
    return {
        INSIDE / path.relative_to(LIBRARY): path for path in sorted(LIBRARY.rglob("*")) if _is_shipped(path)
    }


def _is_shipped(path: Path) -> bool:
    """What a plug-in has for the page, the terminal and the deployment is not; nor its functions, which have their own
    code."""
    if not path.is_file() or path.suffix == ".pyc" or path == LIBRARY / TESTING:
        return False
    if PLUGINS not in path.parents:
        return True
    _plugin, *inside = path.relative_to(PLUGINS).parts
    return path.suffix in (".py", ".json") and inside[:1] not in (
        ["functions"],
        ["commands.py"],
        ["page.json"],
        ["stack.py"],
    )


def build(role: LayerRole, target: LayerTarget = LAMBDA) -> Path:
    """The folder of a built dependency layer (``python/`` inside)."""
    built = layers_folder() / f"{role.name}-{_dependency_key(role, target)}"
    if built.is_dir():
        return built
    beneath = [build(ROLES[name], target) for name in role.above]
    return publish(built, lambda folder: _install(role, target, folder, beneath))


def build_core(files: Mapping[Path, bytes] = MappingProxyType({})) -> Path:
    """The library as a layer, with bytecode for Lambda's Python and a project's files, by their paths in the layer."""
    target = layers_folder() / f"core-{_digest(library_files().values(), more=files)}"
    if target.is_dir():
        return target
    return publish(target, lambda folder: _copy_core(files, folder))


def key_of(folder: Path) -> str:
    """The hash of everything that a built layer is made of."""
    return folder.name.rpartition("-")[2]


def unzipped_bytes(folder: Path) -> int:
    """The folder's size on Lambda's disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def layers_folder() -> Path:
    """Where built layers are."""
    return build_folder() / "layers"


def publish(target: Path, fill: Callable[[Path], None]) -> Path:
    """Build beside the target and rename, so that an interrupted build is never taken for a layer."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        fill(work)
        _set_modes(work)
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():  # else another build of the same content was faster
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _set_modes(folder: Path) -> None:
    """Those of a usual umask: an asset's zip keeps modes, and another user runs the function."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)


def _install(role: LayerRole, target: LayerTarget, folder: Path, beneath: Iterable[Path]) -> None:
    packages = folder / "python"
    _run(
        "uv", "pip", "install", "--quiet", "--no-config",
        "--target", str(packages),
        "--requirements", str(role.requirements),
        "--constraints", str(VERSIONS),
        *(("--excludes", str(role.excludes)) if role.excludes.is_file() else ()),
        *options_of(target),
    )  # fmt: skip
    clean(packages)
    _drop_test_suites(packages)
    for lower in beneath:
        _drop_duplicates(packages, lower / "python")
    if target == LAMBDA:
        bytecode.compile_folder(packages)


def options_of(target: LayerTarget) -> tuple[str, ...]:
    """The options of ``uv pip install`` for wheels of this target alone."""
    platform = ("--python-platform", target.platform) if target.platform else ()
    return ("--python-version", target.python, *platform, "--only-binary", ":all:", "--link-mode", "copy")


def clean(packages: Path) -> None:
    """Leave packages alone in a folder that uv has installed into."""
    shutil.rmtree(packages / "bin", ignore_errors=True)
    (packages / ".lock").unlink(missing_ok=True)
    _drop_installers_notes(packages)


def _copy_core(files: Mapping[Path, bytes], folder: Path) -> None:
    for path, source in library_files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / path)
    for path, content in files.items():
        (folder / path).write_bytes(content)
    bytecode.compile_folder(folder / "python")


def _drop_installers_notes(packages: Path) -> None:
    """RECORD lists the scripts in ``bin``, which name this machine's Python; the others say how a package was
    installed."""
    for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"):
        for path in packages.glob(f"*.dist-info/{name}"):
            path.unlink()


def _drop_test_suites(packages: Path) -> None:
    """Packages' own test suites are never imported; numpy's alone weighs several megabytes."""
    for folder in sorted(packages.rglob("tests"), reverse=True):
        if folder.is_dir():
            shutil.rmtree(folder)


def _drop_duplicates(packages: Path, lower: Path) -> None:
    for path in sorted(packages.rglob("*"), reverse=True):
        twin = lower / path.relative_to(packages)
        if path.is_file() and twin.is_file():
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _dependency_key(role: LayerRole, target: LayerTarget) -> str:
    stack = (role, *(ROLES[name] for name in role.above))
    return _digest([*(path for layer in stack for path in layer.files), VERSIONS], target)


def _digest(
    files: Iterable[Path], target: LayerTarget = LAMBDA, more: Mapping[Path, bytes] = MappingProxyType({})
) -> str:
    recipe = (RECIPE, target.platform, target.python)
    digest = hashlib.sha256(repr(recipe).encode())
    for path in files:
        # the same in a wheel as in the checkout
        folder = next((root for root in (LIBRARY, OURS) if path.is_relative_to(root)), path.parent)
        digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    for path, content in more.items():
        digest.update(f"{path} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _run(*command: str) -> str:
    finished = tried(*command, cwd=project_root())
    if finished.returncode:
        problem = f"{' '.join(command[:3])} failed:\n{finished.stderr.strip()}"
        raise NoPackageIndex(problem) if is_unreachable(finished.stderr) else RuntimeError(problem)
    return finished.stdout


def tried(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that has ended, well or not."""
    # the CDK's command line forces colours on its app, which would end up in uv's output
    plain = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    return subprocess.run(
        command, cwd=cwd, env={**plain, "NO_COLOR": "1"}, capture_output=True, text=True, check=False
    )


def is_unreachable(problem: str) -> bool:
    """Whether uv says that it could not reach a package index."""
    return any(sign in problem.lower() for sign in _UNREACHABLE)
