"""Cached templates with the current code: assets named by content, new versions where something changed."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack import layers, roots
from dualtrack_stack.local import assets, synth
from dualtrack_stack.project.model import Project

if TYPE_CHECKING:
    from pathlib import Path

CODE_OF_A = hashlib.sha256(b"functions/a").hexdigest()


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two functions and the library, with a template as the CDK writes it with fixed names."""
    for module, name, folder in (
        (roots, "OURS", "."),
        (roots, "PLUGINS", "library/plugins"),
        (layers, "LIBRARY", "library"),
        (layers, "PLUGINS", "library/plugins"),
    ):
        monkeypatch.setattr(module, name, tmp_path / folder)
    write(tmp_path, "library/plugins/c/functions/d/handler.py", "d = 1")
    write(tmp_path, "library/plugins/c/panel.js", "1")
    write(tmp_path, "functions/a/handler.py", "a = 1")
    write(tmp_path, "functions/b/handler.py", "b = 1")
    write(tmp_path, "library/lib.py", "lib = 1")
    resources: dict[str, Any] = {"Core": layer("layers/core")}
    for name, parameter in (("a", "Model"), ("b", "Other")):
        resources[f"{name}Function"] = function(f"functions/{name}", parameter)
        resources[f"{name}Version"] = version(f"{name}Function")
        resources[f"{name}Live"] = alias(f"{name}Version")
    template = {"Parameters": {"Model": {}, "Other": {}, "BootstrapVersion": {}}, "Resources": resources}
    write(tmp_path, "assembly/Chat.template.json", json.dumps(template))
    return tmp_path


def key(name: str) -> dict[str, str]:
    return {"S3Bucket": "assets", "S3Key": f"{hashlib.sha256(name.encode()).hexdigest()}.zip"}


def layer(name: str) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Content": key(name)}}


def function(name: str, parameter: str) -> dict[str, Any]:
    variables = {"Variables": {"SETTING": {"Ref": parameter}}}
    properties = {"Code": key(name), "Layers": [{"Ref": "Core"}, "arn:other"], "Environment": variables}
    return {"Type": "AWS::Lambda::Function", "Properties": properties}


def version(of: str) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": of}}}


def alias(of: str) -> dict[str, Any]:
    return {"Type": "AWS::Lambda::Alias", "Properties": {"FunctionVersion": {"Fn::GetAtt": [of, "Version"]}}}


def deployed(repository: Path, **parameters: str) -> dict[str, Any]:
    template = assets.load(repository / "assembly", "Chat", parameters, Project(repository))
    body: dict[str, Any] = json.loads(template.body)
    return body


def version_of(body: dict[str, Any], name: str) -> str:
    version_id: str
    (version_id,) = [
        k for k, r in body["Resources"].items() if re.fullmatch(rf"{name}Version[0-9a-f]{{8}}", k)
    ]
    assert body["Resources"][f"{name}Live"]["Properties"]["FunctionVersion"]["Fn::GetAtt"][0] == version_id
    return version_id


def test_the_same_code_gives_the_same_template(repository: Path) -> None:
    assert deployed(repository) == deployed(repository)


def test_changed_code_makes_a_new_version_of_only_its_function(repository: Path) -> None:
    before = deployed(repository)
    write(repository, "functions/a/handler.py", "a = 2")
    after = deployed(repository)
    assert version_of(after, "a") != version_of(before, "a")
    assert version_of(after, "b") == version_of(before, "b")


def test_a_changed_library_makes_new_versions_of_all(repository: Path) -> None:
    before = deployed(repository)
    write(repository, "library/lib.py", "lib = 2")
    after = deployed(repository)
    assert all(version_of(after, name) != version_of(before, name) for name in "ab")


def test_a_changed_setting_makes_a_new_version(repository: Path) -> None:
    """A version keeps the environment it was published with."""
    before = deployed(repository, Model="one")
    assert version_of(deployed(repository, Model="two"), "a") != version_of(before, "a")


def test_files_that_are_not_code_do_not_count(repository: Path) -> None:
    """In the library's layer: what a plug-in has for the page, and the code of its functions."""
    before = deployed(repository)
    write(repository, "library/plugins/c/panel.js", "2")
    write(repository, "library/plugins/c/functions/d/handler.py", "d = 2")
    write(repository, "functions/a/__pycache__/handler.cpython-311.pyc", "x")
    write(repository, "functions/a/.keep", "")
    assert deployed(repository) == before


def test_every_asset_is_named_by_its_content(repository: Path) -> None:
    template = assets.load(repository / "assembly", "Chat", {}, Project(repository))
    assert len({asset.key for asset in template.assets}) == 3
    assert CODE_OF_A not in template.body
    assert {asset.key for asset in template.files()} == {*(a.key for a in template.assets), template.key}


def test_missing_code_is_an_error(repository: Path) -> None:
    (repository / "functions/a/handler.py").unlink()
    (repository / "functions/a").rmdir()
    with pytest.raises(RuntimeError, match="names code that is not"):
        deployed(repository)


def test_the_bootstrap_check_is_left_out(repository: Path) -> None:
    assert "BootstrapVersion" not in deployed(repository)["Parameters"]


@pytest.mark.parametrize("part", ["plugins/c/stack.py", "models/providers/c/provider.py"])
def test_what_a_folder_deploys_is_in_the_key_of_the_templates(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that templates are not taken for those of a checkout without it."""
    monkeypatch.setattr(synth, "LIBRARY", tmp_path)
    monkeypatch.setattr(synth, "PLUGINS", tmp_path / "plugins")
    for name in ("api/route.py", "api/table.py", "models/provider.py", "settings.py"):
        write(tmp_path, name, "")
    without = synth.content_key()
    write(tmp_path, part, "STACK = 1")
    first = synth.content_key()
    write(tmp_path, part, "STACK = 2")
    assert len({without, first, synth.content_key()}) == 3
