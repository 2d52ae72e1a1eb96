"""Function and layer code for the local stack: zips named by content, put into cached templates.

In the local stage an asset's name is fixed, so a changed function needs no new synthesis. Here each
folder is zipped, its fixed name in the template is replaced by its content's hash, and the versions of changed
functions get new logical ids, as with the CDK: a version is immutable, and only a new one lets the alias move.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.layers import library_files
from dualtrack_stack.local.own import adapt
from dualtrack_stack.project.function import CODE, own_code
from dualtrack_stack.project.model import packaged
from dualtrack_stack.roots import function_folders

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dualtrack_stack.project.model import Project

CORE: Final = "layers/core"
"""The fixed name of the library's asset."""

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_NOT_CODE: Final = {"__pycache__", ".keep", ".mypy_cache", ".ruff_cache"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One zip: ``key`` is its name in the assets bucket, ``placeholder`` its name in the template."""

    placeholder: str
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class AssetTemplate:
    """A template ready to deploy and the assets it names."""

    name: str
    body: str
    assets: tuple[Asset, ...]

    @property
    def key(self) -> str:
        """Its name in the assets bucket: CloudFormation takes no body over 51,200 bytes in a request."""
        return f"{hashlib.sha256(self.body.encode()).hexdigest()[:32]}.json"

    def files(self) -> tuple[Asset, ...]:
        """Everything to upload before the deployment."""
        return (*self.assets, Asset("", self.key, self.body.encode()))


def load(assembly: Path, stack: str, parameters: Mapping[str, str], project: Project) -> AssetTemplate:
    """The template of one stack with the current code, and with the project's tools, profiles and settings.

    ``parameters``: the values it will be deployed with; a version contains its environment, so a changed value changes
    the version.
    """
    text = (assembly / f"{stack}.template.json").read_text(encoding="utf-8")
    assets = tuple(_assets(text, project))
    for asset in assets:
        text = text.replace(asset.placeholder, asset.key)
    body: dict[str, Any] = json.loads(text)
    if not _all_known(body, assets):
        raise RuntimeError(f"The template {stack} names code that is not in functions/ or layers/core.")
    _leave_out_bootstrap_check(body)
    if any(asset.placeholder == _placeholder(CODE) for asset in assets):
        adapt(body, project.own("local"))
    used = {key: value for key, value in parameters.items() if key in body.get("Parameters", {})}
    return AssetTemplate(stack, json.dumps(_renew_versions(body, used)), assets)


def _assets(text: str, project: Project) -> Iterator[Asset]:
    """What the template names, by the fixed names of `StageSettings.asset_name`."""
    functions = {f"functions/{name}": folder for name, folder in function_folders().items()}
    for name in (CORE, *functions):
        placeholder = _placeholder(name)
        if placeholder in text:
            tools = own_code(project.root) if name == CODE else {}
            content = zip_library(packaged(project)) if name == CORE else zip_folder(functions[name], tools)
            yield Asset(placeholder, f"{hashlib.sha256(content).hexdigest()[:32]}.zip", content)


def _placeholder(name: str) -> str:
    """An asset's key: the SHA-256 of the name that the CDK was given."""
    return f"{hashlib.sha256(name.encode()).hexdigest()}.zip"


def _all_known(body: dict[str, Any], assets: tuple[Asset, ...]) -> bool:
    """Whether the assets contain all code that the template names."""
    named = {
        code["S3Key"]
        for resource in body["Resources"].values()
        for code in (
            resource["Properties"].get(field) for field in ("Code", "Content") if "Properties" in resource
        )
        if isinstance(code, dict) and "S3Key" in code
    }
    return named <= {asset.key for asset in assets}


def zip_library(more: Mapping[Path, bytes] = MappingProxyType({})) -> bytes:
    """The core layer: the library and a project's files, by their paths in the layer."""
    return _zip({**library_files(), **more})


def zip_folder(folder: Path, more: Mapping[Path, bytes] = MappingProxyType({})) -> bytes:
    """A zip of the folder and of more files, by their paths in it. It depends only on names and contents."""
    return _zip({**{path.relative_to(folder): path for path in folder.rglob("*")}, **more})


def _zip(files: Mapping[Path, Path | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for relative, file in sorted(files.items(), key=lambda item: item[0]):
            if isinstance(file, bytes) or (
                file.is_file() and not _NOT_CODE.intersection(relative.parts) and file.suffix != ".pyc"
            ):
                info = zipfile.ZipInfo(relative.as_posix(), _EPOCH)
                info.external_attr = (0o644 if isinstance(file, bytes) else file.stat().st_mode & 0o777) << 16
                archive.writestr(info, file if isinstance(file, bytes) else file.read_bytes())
        if not archive.namelist():  # Lambda accepts no empty zip
            archive.writestr(zipfile.ZipInfo("empty", _EPOCH), b"")
    return buffer.getvalue()


def _leave_out_bootstrap_check(body: dict[str, Any]) -> None:
    """The local account is not bootstrapped: assets are uploaded here."""
    body.get("Parameters", {}).pop("BootstrapVersion", None)
    body.pop("Rules", None)


def _renew_versions(body: dict[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """New logical ids for the versions, derived from what a version freezes."""
    resources: dict[str, Any] = body["Resources"]
    renamed: dict[str, str] = {}
    for logical_id, resource in resources.items():
        if resource["Type"] == "AWS::Lambda::Version":
            function = resources[resource["Properties"]["FunctionName"]["Ref"]]
            layers = [
                resources[layer["Ref"]]
                for layer in function["Properties"].get("Layers", [])
                if _is_own(layer)
            ]
            frozen = json.dumps([function["Properties"], layers, dict(parameters)], sort_keys=True)
            renamed[logical_id] = logical_id + hashlib.sha256(frozen.encode()).hexdigest()[:8]
    return _rename(body, renamed)  # type: ignore[no-any-return]


def _is_own(layer: Any) -> bool:
    return isinstance(layer, dict) and "Ref" in layer


def _rename(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_rename(item, names) for item in value]
    if isinstance(value, dict):
        return {names.get(key, key): _rename(item, names) for key, item in value.items()}
    return value
