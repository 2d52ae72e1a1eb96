"""The page's own code is formatted and has no findings: Biome, with the rules of biome.jsonc."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from dualtrack_stack.node import node
from dualtrack_stack.page import web

from tests.drivers.node import npm_script

ROOT = Path(__file__).parents[2]
PAGE, PLUGINS = "infra/dualtrack_stack/page", "layers/core/python/dualtrack/plugins"
INSTALL = "bash .ci/install_biome.sh"
COLUMNS = 120  # the formatter does not break long strings and comments

OWN = sorted(file for path, file in web.files().items() if re.search(r"^(?!lib/).*\.(js|css|html)$", path))


def biome(root: Path) -> subprocess.CompletedProcess[str]:
    """Biome on the page and the plug-ins below this folder, by the configuration there; or skip the test."""
    script = npm_script("@biomejs/biome", "bin/biome", folder="biome", install=INSTALL)
    folders = [folder for folder in (PAGE, PLUGINS) if (root / folder).is_dir()]
    return subprocess.run(
        [node(), str(script), "check", "--error-on-warnings", "--colors=off", *folders],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_page_code_is_clean() -> None:
    """Every file of the page's own code is checked, wherever it lies."""
    done = biome(ROOT)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-6_000:]
    assert f"Checked {len(OWN)} files" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        (f"{PAGE}/js/planted.js", "export const  a = 1;\n", "export·const·a·=·1;"),
        (f"{PAGE}/js/planted.js", "const unused = 1;\nexport {};\n", "noUnusedVariables"),
        (f"{PAGE}/js/planted.js", "undeclared();\n", "noUndeclaredVariables"),
        (f"{PAGE}/css/planted.css", ".a {\n  color: red;\n  color: blue;\n}\n", "noDuplicateProperties"),
        (f"{PLUGINS}/a/panel.js", "undeclared();\n", "noUndeclaredVariables"),
        (f"{PLUGINS}/a/panel.css", ".a {\n  color: red;\n  color: blue;\n}\n", "noDuplicateProperties"),
        (f"{PAGE}/index.html", '<img src="a.png">\n', "useAltText"),
    ],
    ids=["format", "unused", "undeclared", "css", "plug-in", "css of a plug-in", "html"],
)
def test_planted_faults_are_found(name: str, text: str, finding: str, tmp_path: Path) -> None:
    """The configuration reaches scripts, style sheets and HTML."""
    shutil.copy(ROOT / "biome.jsonc", tmp_path)
    planted = tmp_path / name
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    done = biome(tmp_path)
    assert done.returncode != 0
    assert finding in done.stdout + done.stderr


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_no_line_is_too_long(path: Path) -> None:
    """Also where the formatter may not break it."""
    long = [number for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > COLUMNS]
    assert long == []
