"""The synthesised stages, built once per content of the repository and shared by all workers.

The CDK is loaded once: of the twenty seconds that a synthesis by itself takes, sixteen are its start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack_stack import bytecode, layers
from dualtrack_stack.local import synth
from dualtrack_stack.node import node
from dualtrack_stack.project.read import read_project
from dualtrack_stack.roots import project_root
from dualtrack_stack.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import aws_cdk as cdk

# The CDK runs on the wheel's Node, as in the local stack.
os.environ.setdefault("JSII_NODE", node())

AWS_STAGES: Final = ("staging", "prod")


def synthesised(stage: str, settings: Mapping[str, str] | None = None) -> Path:
    """The folder of a stage's assembly, of this run, another worker or an earlier run with the same content."""
    return _synthesised(stage, frozenset((settings or {}).items()))


@cache
def _synthesised(stage: str, settings: frozenset[tuple[str, str]]) -> Path:
    if stage == "local":
        with synth.Synthesis() as shipped:
            return shipped.assembly()
    with _alone():
        built_layers()
        return kept(
            f"{stage}-{synth.content_key(stage, dict(settings))}",
            lambda folder: _synthesise(folder, stage, {**os.environ, **dict(settings)}),
        )


@contextmanager
def _alone() -> Iterator[None]:
    """No other worker synthesises, or builds layers, meanwhile."""
    synth.cache().mkdir(parents=True, exist_ok=True)
    with (synth.cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(name: str, synthesise: Callable[[Path], None]) -> Path:
    """The assembly of this name, which ``synthesise`` writes into a folder if no run has yet."""
    target = synth.cache() / name
    if not target.is_dir():
        synth.cache().mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".synth-", dir=synth.cache()))
        synthesise(work)
        try:
            work.rename(target)
        except OSError:  # another run was faster
            shutil.rmtree(work)
    return target


def empty_app(folder: Path, stage: str) -> cdk.App:
    """The app of a stage, which writes into a folder."""
    import aws_cdk as cdk

    return cdk.App(outdir=str(folder), context={**synth.context(stage), **synth.IN_PLACE})


def _synthesise(folder: Path, stage: str, environ: Mapping[str, str]) -> None:
    """What `dualtrack_stack.app` does with a stage on AWS."""
    from dualtrack_stack.app import build_deployed, check

    app, root = empty_app(folder, stage), project_root()
    build_deployed(app, read_settings(stage, environ, root), read_project(root, stage, environ))
    check(app)
    app.synth()


def built_layers() -> dict[str, Path]:
    """The folder of each layer as deployed to AWS, by role, including the library's; skips without a package index,
    which has the wheels for Lambda's platform.
    """
    folders, problem = _folders()
    return folders if not problem else pytest.skip(f"layers cannot be built here: {problem}")


@cache
def _folders() -> tuple[dict[str, Path], str]:
    """The layers' folders, or why there are none: asked by hundreds of tests, and tried once."""
    try:
        folders = {name: layers.build(role) for name, role in layers.ROLES.items()}
        return {**folders, "core": layers.build_core()}, ""
    except (layers.NoPackageIndex, bytecode.NoCompiler) as problem:
        return {}, str(problem)
