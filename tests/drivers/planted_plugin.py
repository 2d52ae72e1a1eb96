"""A plug-in's folder with files of every kind, for tests of what the page shows and serves of one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

SERVED: Final = {"plugins/planted/panel.js", "plugins/planted/panel.css", "plugins/planted/words.js"}
HELD: Final = {
    *("plugin.py", "routes.py", "__init__.py", "page.json", "README.md", "requirements.txt", "panel.js.py"),
    *("__pycache__/plugin.cpython-313.pyc", "inner/deep.js", "js", ".js"),
}
"""Files that are not served."""
LISTED: Final[list[dict[str, Any]]] = [
    {"label": "Another", "name": "bare", "styled": False},
    {"label": "Planted", "name": "planted", "styled": True},
]


def plug_in(folder: Path) -> Path:
    """A folder of plug-ins: one with everything, one with a label alone, one that the page knows nothing of."""
    for path in (*(path.removeprefix("plugins/planted/") for path in SERVED), *HELD):
        file = folder / "planted" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("export const open = () => {};" if file.suffix == ".js" else "secret = 1")
    for name, label in (("planted", "Planted"), ("bare", "Another")):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "page.json").write_text(json.dumps({"label": label}))
    (folder / "silent").mkdir()
    (folder / "silent" / "plugin.py").write_text("secret = 1")
    (folder / "panel.js").write_text("no plug-in's")
    return folder
