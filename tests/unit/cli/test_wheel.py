"""An installation outside a checkout has the client and the library, but no local stack."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from dualtrack import __version__

from tests.servers.api_server import Script, answered, api_server

ROOT = Path(__file__).parents[3]

COMMAND = (
    "import sys; sys.path[:0] = sys.argv[1:3]; del sys.argv[1:3]; from dualtrack_cli.main import main; main()"
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was unpacked."""
    built, folder = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("installed")
    command = ["uv", "build", "--quiet", "--wheel", "--out-dir", str(built), str(ROOT)]
    subprocess.run(command, check=True, timeout=120)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def run(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command with the wheel's packages and its dependencies; without `site` no checkout is on the path."""
    paths = (str(installed), sysconfig.get_path("purelib"))
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", COMMAND, *paths, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_its_packages_have_the_projects_name(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert names == {"dualtrack", "dualtrack_cli"}


def test_it_has_the_librarys_version(installed: Path, tmp_path: Path) -> None:
    (about,) = installed.glob("*.dist-info")
    assert about.name == f"dualtrack-{__version__}.dist-info"
    assert run(installed, "--version", cwd=tmp_path).stdout.split()[-1] == __version__


def test_it_talks_to_a_stack_elsewhere(installed: Path, tmp_path: Path) -> None:
    with api_server(Script(events=answered(), mode=None)) as url:
        done = run(installed, "chat", "How?", "--url", url, "--token", "token-of-user", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Use **OAuth 2.0**." in done.stdout


@pytest.mark.parametrize(
    "arguments", [("chat", "How?"), ("credits", "show"), ("dev",), ("aws", "cost")], ids=" ".join
)
def test_the_local_stack_needs_a_checkout(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run(installed, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: The local stack needs a checkout")
    assert list(tmp_path.iterdir()) == []
