"""What a project's tools import, and what their function has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.project.imports import missing_imports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "layer"
    for name in ("stripe", "humanize-4.17.0.dist-info"):
        (folder / name).mkdir(parents=True)
    (folder / "typing_extensions.py").write_text("")
    (folder / "_speedups.cpython-313-aarch64-linux-gnu.so").write_text("")
    return folder


def missing(root: Path, packages: Path, source: str) -> list[str]:
    tools = root / "tools" / "billing"
    tools.mkdir(parents=True)
    (tools / "refunds.py").write_text(source)
    return missing_imports(root, packages)


@pytest.mark.parametrize(
    "source",
    [
        "import json, stripe.error, _speedups",
        "from typing_extensions import Self",
        "import boto3",
        "from dualtrack import tool",
        "from tools.billing import other",
        "from . import other\nfrom .other import name",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "try:\n    import orjson\nexcept ImportError:\n    import json as orjson",
    ],
)
def test_what_the_function_has_may_be_imported(tmp_path: Path, packages: Path, source: str) -> None:
    assert missing(tmp_path, packages, source) == []


@pytest.mark.parametrize(
    ("source", "line", "module"),
    [
        ("import pandas as pd", 1, "pandas"),
        ("\ndef tool():\n    from humanize import naturaltime", 3, "humanize"),
        ("try:\n    import pandas\nfinally:\n    pass", 2, "pandas"),
        ("try:\n    import json\nexcept ImportError:\n    import orjson", 4, "orjson"),
        ("if True:\n    pass\nelse:\n    import pytest", 4, "pytest"),
        ("with open('x') as f:\n    import helpers", 2, "helpers"),
        ("class Tool:\n    import cgi", 2, "cgi"),
        ("match 1:\n    case 1:\n        import pandas", 3, "pandas"),
    ],
)
def test_what_it_has_not_is_named_with_file_and_line(
    tmp_path: Path, packages: Path, source: str, line: int, module: str
) -> None:
    (said,) = missing(tmp_path, packages, source)
    assert said.startswith(f"tools/billing/refunds.py:{line}: {module} is not in what the function has")
