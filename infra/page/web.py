"""What is served of this folder, and under which rules: the same locally and on CloudFront."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
SOURCES: Final = ("*.py", "*.pyc", "__pycache__")
"""What of the folder is no part of the page."""

PERMISSIONS_POLICY: Final = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


def is_served(path: str) -> bool:
    """Whether a path of the folder belongs to the page."""
    wanted = Path(path)
    return not any(wanted.match(source) or source in wanted.parts for source in SOURCES)


def content_security_policy(*connect: str) -> str:
    """The page's own files alone; no inline script or style, no eval, and no images from elsewhere.

    ``connect``: origins besides its own that the page calls. Trusted Types let no string become markup but
    through DOMPurify's policy, and no string become a worker but the page's own. An answer's images stay out, because
    their address can carry data away.
    """
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "worker-src 'self'",
            "style-src 'self'",
            "font-src 'self'",
            "img-src 'self' blob:",
            " ".join(("connect-src 'self'", *connect)),
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types dompurify workers",
        )
    )


def headers() -> dict[str, str]:
    """The headers of every file where API and page share an origin."""
    return {
        "Content-Security-Policy": content_security_policy(),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": PERMISSIONS_POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
