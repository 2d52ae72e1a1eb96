"""A deployment's own profiles in the deployed code: AWS's core layer and the local stack's library zip."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aws_cdk as cdk
import pytest
from dualtrack.checked_settings import checked
from dualtrack_stack import layers
from dualtrack_stack.local.assets import zip_library
from dualtrack_stack.profiles import BadProfile, own_profiles
from dualtrack_stack.project.model import PROFILES, BadProject, packaged
from dualtrack_stack.project.read import read_project
from dualtrack_stack.roots import project_root
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.function_specs import SPECS
from dualtrack_stack.stacks.functions import Layers

from tests.drivers.documents import ROOT
from tests.drivers.synthesised import built_layers

if TYPE_CHECKING:
    from pathlib import Path

READ = (
    "import json, sys\nsys.path.insert(0, sys.argv[1])\nfrom dualtrack.profiles import all_profiles\n"
    "print(json.dumps({name: profile.description for name, profile in all_profiles().items()}))"
)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an additional profile, and one that replaces the library's."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    assistant = json.loads((ROOT / "layers/core" / PROFILES / "assistant.json").read_text())
    for name in ("assistant", "helper"):
        (folder / f"{name}.json").write_text(json.dumps(assistant | {"name": name, "description": "Ours."}))
    monkeypatch.setenv("DUALTRACK_PROFILES", str(folder))
    return folder


def described(packaged: Path) -> Any:
    """Every profile's description, read by a process with only this folder on its path; it writes no bytecode there."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", READ, str(packaged / "python")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def core_asset(tmp_path: Path) -> Path:
    """The core layer as staging's stacks name it, staged by the CDK."""
    built_layers()
    app = cdk.App(outdir=str(tmp_path / "assembly"))
    project = read_project(project_root())
    Layers(cdk.Stack(app, "Stack"), STAGES["staging"], project).of(replace(SPECS["abort"], layers=()))
    app.synth()
    (asset,) = (path for path in (tmp_path / "assembly").glob("asset.*") if path.is_dir())
    return asset


def test_the_synthesised_layer_has_the_deployments_profiles(tmp_path: Path, own: Path) -> None:
    deployed = described(core_asset(tmp_path))
    librarys = described(layers.build_core())
    assert deployed == {**librarys, "assistant": "Ours.", "helper": "Ours."}
    assert "helper" not in librarys


def test_a_bad_profile_fails_the_synthesis(tmp_path: Path, own: Path) -> None:
    (own / "helper.json").write_text("{}")
    with pytest.raises(BadProject, match=r"helper\.json:1: name: it is missing"):
        core_asset(tmp_path)


def test_a_profile_that_names_no_configured_server_is_refused_with_what_there_is(own: Path) -> None:
    path = own / "helper.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mcp": ["githup"]}))
    environment = {"DUALTRACK_PROFILES": str(own)}
    problem = r"helper\.json:1: mcp\.0: there is no MCP server 'githup'; "
    with pytest.raises(BadProfile, match=problem + r"none is configured \(MCP_SERVERS, GITHUB_MCP_URL\)"):
        own_profiles(checked(environment))
    environment["MCP_SERVERS"] = '[{"name": "docs", "url": "http://127.0.0.1:1/"}]'
    environment["GITHUB_MCP_URL"] = "http://127.0.0.1:2/"
    with pytest.raises(BadProfile, match=problem + r"there are github, docs; a \? behind"):
        own_profiles(checked(environment))
    path.write_text(path.read_text().replace("githup", "docs"))
    assert path in own_profiles(checked(environment))


def test_the_local_stacks_zip_has_them(tmp_path: Path, own: Path) -> None:
    project = read_project(tmp_path, environ={"DUALTRACK_PROFILES": str(own)})
    content = zip_library(packaged(project))
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path / "unpacked")
    librarys = described(ROOT / "layers" / "core")
    assert described(tmp_path / "unpacked") == {**librarys, "assistant": "Ours.", "helper": "Ours."}
