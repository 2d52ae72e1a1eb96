"""The reader of imports, on which the check of the layers relies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack.models.provider import FOLDER, PROVIDERS

from tests.drivers.import_graph import imports_of, is_there, outside_imports

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import a.b", {"a.b"}),
        ("from a.b import c", {"a.b"}),
        ("def f():\n    import a", {"a"}),
        ("class C:\n    def m(self):\n        from a import b", {"a"}),
        ("with collecting():\n    import a", {"a"}),
        ("try:\n    import a\nexcept ImportError:\n    import b", {"a", "b"}),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b", {"b"}),
        ("if typing.TYPE_CHECKING:\n    import a", set()),
        ("if x:\n    import a", {"a"}),
        ("importlib.import_module('a.b')", {"a.b"}),
        ("import_module(name)", set()),
        ("__import__('a')", {"a"}),
        ("with on_demand('a', 'a.b'):\n    pass", {"a", "a.b"}),
        ("from . import a", {"here.there"}),
        ("from .a import b", {"here.there.a"}),
        ("from .. import a", {"here"}),
        ("from ..a import b", {"here.a"}),
    ],
)
def test_an_import_counts_wherever_it_is_executed(tmp_path: Path, source: str, wanted: set[str]) -> None:
    file = tmp_path / "source.py"
    file.write_text(source)
    assert {wanted_import.module for wanted_import in imports_of(file, "here.there")} == wanted


def test_imports_of_the_library_are_followed(tmp_path: Path) -> None:
    library = tmp_path / "library"
    function = tmp_path / "function"
    for path, source in {
        function / "handler.py": "from lib.part import name\nfrom lib import sub",
        library / "lib" / "__init__.py": "import first",
        library / "lib" / "part.py": "def f():\n    from .other import g",
        library / "lib" / "other.py": "def f():\n    import second",
        library / "lib" / "sub.py": "from third import x",
        library / "lib" / "unused.py": "import never",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    outside = outside_imports(function / "handler.py", (function, library))
    assert {wanted_import.module for wanted_import in outside} == {"first", "second", "third"}


def test_every_provider_counts_where_any_may_be_imported() -> None:
    """Also one that loads what no other does."""
    library = FOLDER.parents[2]
    outside = outside_imports(FOLDER.with_name("open_model.py"), (library,))
    by = {imported.source.parent.name for imported in outside if imported.source.name == "client.py"}
    assert by == set(PROVIDERS)


def test_a_module_exists_only_with_its_full_name(tmp_path: Path) -> None:
    (tmp_path / "space" / "pack").mkdir(parents=True)
    (tmp_path / "space" / "pack" / "__init__.py").touch()
    (tmp_path / "space" / "fast.cpython-313-aarch64-linux-gnu.so").touch()
    source = tmp_path / "source.py"
    source.write_text("import space\nimport space.pack\nimport space.fast\nimport space.gone\nimport gone")
    there = {
        wanted_import.module: is_there(wanted_import, (tmp_path,)) for wanted_import in imports_of(source)
    }
    assert there == {
        "space": True,
        "space.pack": True,
        "space.fast": True,
        "space.gone": False,
        "gone": False,
    }
