"""Which files of this folder and of plug-ins are served, and with which headers: the same locally and on CloudFront."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final

from dualtrack_stack.roots import PLUGINS

FOLDER: Final = Path(__file__).parent
LISTED: Final = "page.json"
"""A plug-in's file that says what the page shows of it before it loads more (docs/page.md, "A plug-in's part")."""

_SOURCES: Final = (".py", ".pyc")
"""Files of the page's folder that are not part of the page."""
_OF_A_PLUGIN: Final = (".js", ".css")
"""Its files that are; all others are never served."""

PERMISSIONS_POLICY: Final = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


def files() -> dict[str, Path]:
    """The files by the path at which they are served: ``js/main.js``, ``plugins/NAME/panel.js``."""
    own = (path for path in FOLDER.rglob("*") if path.is_file() and path.suffix not in _SOURCES)
    added = (path for path in PLUGINS.glob("*/*") if path.is_file() and path.suffix in _OF_A_PLUGIN)
    return {
        **{path.relative_to(FOLDER).as_posix(): path for path in own},
        **{f"plugins/{path.parent.name}/{path.name}": path for path in added},
    }


def config(**of_the_stage: Any) -> dict[str, Any]:
    """The ``config.json`` of a stage: with what the page shows of each plug-in, in the order of their labels."""
    listed = [
        {
            **json.loads(path.read_text(encoding="utf-8")),
            "name": path.parent.name,
            "styled": path.with_name("panel.css").is_file(),
        }
        for path in PLUGINS.glob(f"*/{LISTED}")
    ]
    return {
        **of_the_stage,
        "plugins": sorted(listed, key=lambda each: (each.get("label", ""), each["name"])),
    }


def content_security_policy(*connect: str) -> str:
    """Only the page's own files; no inline script or style, no eval, and no images from elsewhere.

    ``connect``: origins besides its own that the page calls. Trusted Types: a string becomes markup only through
    DOMPurify's policy, and only the page's own scripts become workers. Images in answers are blocked, because their
    address can carry data away.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "worker-src 'self'",
            "style-src 'self'",
            "font-src 'self'",
            "img-src 'self' blob:",
            "frame-src 'self'",
            " ".join(("connect-src 'self'", *connect)),
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types dompurify workers",
        )
    )


DIAGRAM: Final = "diagram.html"
"""The frame that draws diagrams; no other file may be framed."""

_DIAGRAM_SCRIPTS: Final = ("lib/mermaid.js", "js/diagram_frame.js")


def diagram_policy() -> str:
    """An origin of its own, which loads nothing and runs the texts of these scripts alone. Mermaid writes style sheets
    into its pictures, so it cannot run under the page's policy. The page's ``frame-src`` keeps it from going elsewhere.

    The page hands it the texts. What it asked for itself would come from no origin, as if from any page of the web, and
    the local front refuses those.
    """
    markup = (FOLDER / DIAGRAM).read_text(encoding="utf-8")
    texts = [markup.partition("<script>")[2].partition("</script>")[0]]
    texts += [(FOLDER / name).read_text(encoding="utf-8") for name in _DIAGRAM_SCRIPTS]
    return "; ".join(
        (
            "sandbox allow-scripts",
            "default-src 'none'",
            " ".join(("script-src", *map(_source_of, texts))),
            "style-src 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        )
    )


def _source_of(script: str) -> str:
    """A script's text as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def headers(path: str = "index.html") -> dict[str, str]:
    """The headers of a file where API and page share an origin."""
    return {
        "Content-Security-Policy": diagram_policy() if path == DIAGRAM else content_security_policy(),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": PERMISSIONS_POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
