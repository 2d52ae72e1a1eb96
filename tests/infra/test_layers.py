"""The layers as deployed to AWS: within Lambda's limit, for its platform, one per role."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from dualtrack_stack import bytecode, layers
from dualtrack_stack.local.assets import zip_library
from dualtrack_stack.roots import function_folders
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.documents import ROOT
from tests.drivers.import_graph import imports_of

ADAPTER_BYTES = 15_000_000
"""Lambda Web Adapter, which AWS publishes; its layer cannot be measured here."""


def packages(folder: Path) -> set[str]:
    return {path.name for path in (folder / "python").iterdir() if path.is_dir()}


def test_every_function_fits_with_its_layers(
    built: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {name: layers.unzipped_bytes(folder) for name, folder in built.items()}
    lines = []
    for spec in SPECS.values():
        code = layers.unzipped_bytes(function_folders()[spec.name])
        total = code + sum(sizes[name] for name in ("core", *spec.layers))
        total += ADAPTER_BYTES if spec.name == "stream" else 0
        lines.append(f"{spec.name:13} {total / 1e6:7.1f} MB  core + {' + '.join(spec.layers)}")
        assert total <= layers.UNZIPPED_LIMIT, spec.name
    with capsys.disabled():
        print("", f"Unzipped, of {layers.UNZIPPED_LIMIT / 1e6:.1f} MB:", *lines, sep="\n")


def test_the_library_on_lambda_knows_nothing_of_the_stack(built: dict[str, Path], tmp_path: Path) -> None:
    """`dualtrack.testing` does: it is in no layer, neither of AWS nor of the local stack."""
    zipfile.ZipFile(io.BytesIO(zip_library())).extractall(tmp_path)
    for folder in (built["core"], tmp_path):
        modules = list(folder.rglob("*.py"))
        assert len(modules) > 100
        assert {found.module.split(".")[0] for path in modules for found in imports_of(path)}.isdisjoint(
            {"dualtrack_stack", "ministack"}
        )


def test_heavy_packages_are_only_in_layers_that_use_them(built: dict[str, Path]) -> None:
    heavy = {
        "anthropic": "claude",
        "numpy": "search",
        "voyageai": "search",
        "mcp": "mcp",
        "uvicorn": "stream",
        "onnxruntime": "embed",
        "ladybug": "graph",
        "neo4j": "graph",
    }
    for package, role in heavy.items():
        assert {name for name, folder in built.items() if package in packages(folder)} >= {role}
    assert {name for name, folder in built.items() if "numpy" in packages(folder)} == {
        "search",
        "embed",
    }
    assert {name for name, folder in built.items() if "anthropic" in packages(folder)} == {"claude"}
    assert {name for name, folder in built.items() if "mcp" in packages(folder)} == {"mcp"}


def test_boto3_is_the_runtimes_own(built: dict[str, Path]) -> None:
    for folder in built.values():
        assert not packages(folder) & {"boto3", "botocore"}


def test_compiled_code_is_for_lambdas_processor_and_python(built: dict[str, Path]) -> None:
    libraries = [path for folder in built.values() for path in folder.rglob("*.so*") if path.is_file()]
    assert libraries
    for path in libraries:
        assert path.read_bytes()[18:20] == b"\xb7\x00", path  # ELF machine 183: AArch64
        tag = re.search(r"cpython-(\d+)", path.name)
        assert tag is None or tag[1] == "313", path


def test_bytecode_outlives_the_zip(built: dict[str, Path]) -> None:
    """A .pyc that checks mtimes is invalid after the asset's zip has normalised them."""
    for folder in built.values():
        compiled = list(folder.rglob("*.pyc"))
        assert compiled
        for path in compiled:
            assert int.from_bytes(path.read_bytes()[4:8], "little") == 1, path  # hash-based, unchecked


BUILDING = """
import os, sys
os.umask(int(sys.argv[1], 8))
from dualtrack_stack import layers
print(layers.build(layers.ROLES["stream"]))
print(layers.build_core())
"""
ELSEWHERE = {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}


def built_elsewhere(root: Path) -> list[Path]:
    """A dependency layer and the library, built from a copy of the sources under another umask and locale."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "layers", root / "layers", ignore=ignored)
    (root / "infra" / "dualtrack_stack").mkdir(parents=True)
    for name in (
        "infra/dualtrack_stack/__init__.py",
        "infra/dualtrack_stack/bytecode.py",
        "infra/dualtrack_stack/layers.py",
        "infra/dualtrack_stack/node.py",
        "infra/dualtrack_stack/roots.py",
        "infra/dualtrack_stack/compile_bytecode.mjs",
    ):
        shutil.copyfile(ROOT / name, root / name)
    done = subprocess.run(
        [sys.executable, "-c", BUILDING, "077"],
        cwd=root,
        env={**os.environ, **ELSEWHERE, "PYTHONPATH": f"{root / 'infra'}:{root / 'layers/core/python'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Path(line) for line in done.stdout.split("\n") if line]


def content(folder: Path) -> dict[str, tuple[int, str]]:
    """Mode and hash of everything in a layer."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.stat().st_mode),
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_a_layer_is_the_same_wherever_it_is_built(built: dict[str, Path], tmp_path: Path) -> None:
    here = [built["stream"], built["core"]]
    there = built_elsewhere(tmp_path / "ci" / "with a longer path")
    assert [layers.key_of(folder) for folder in here] == [layers.key_of(folder) for folder in there]
    for layer, other in zip(here, there, strict=True):
        assert layer != other
        assert content(layer) == content(other)


def test_without_a_compiler_no_layer_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without bytecode would differ from CI's, and start at half the speed."""
    (tmp_path / "module.py").write_text("")
    for name, value in {
        "UV_PYTHON_PREFERENCE": "only-managed",
        "UV_PYTHON_INSTALL_DIR": str(tmp_path / "none"),
        "UV_OFFLINE": "1",
        "XDG_CACHE_HOME": str(tmp_path / "no cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(bytecode, "lambda_python", bytecode.lambda_python.__wrapped__)
    with pytest.raises(bytecode.NoCompiler) as refused:
        bytecode.compile_folder(tmp_path)
    assert "No interpreter found for Python 3.13" in str(refused.value)  # uv's own words
    assert "offline" in str(refused.value)
    assert "uv python install 3.13" in str(refused.value)


def test_the_layers_versions_are_those_of_the_lock(tmp_path: Path) -> None:
    """``just versions`` writes them."""
    (recipe,) = re.findall(
        r"^    uv (export .+) --output-file \S+$", (ROOT / "justfile").read_text(), re.MULTILINE
    )
    done = subprocess.run(["uv", *recipe.split()], cwd=ROOT, capture_output=True, text=True, check=True)
    assert layers.VERSIONS.read_text() == done.stdout
