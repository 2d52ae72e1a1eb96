"""Chromium for the page's tests: Debian's, headless, without its own network requests.

Its headless shell, if it is installed: the browser itself makes a whole user's profile for each context, a second and a
half of a processor.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

PROGRAMS = ("chromium-headless-shell", "chromium")
INSTALL = "bash .ci/install_chromium.sh"
FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
    "--site-per-process",  # as the browser is by itself: a frame that hangs does not hang its page
)


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A running browser; skips the test without Chromium."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"Chromium is not installed: {INSTALL}")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: uv sync --group browser"
    )
    with playwright.sync_playwright() as driver:
        browser: Browser = driver.chromium.launch(executable_path=program, args=[*FLAGS, *flags])
        yield browser
        browser.close()


def axe_source() -> str:
    """The script of axe-core; skips the test without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    script = cache / "dualtrack/page/node_modules/axe-core/axe.min.js"
    if not script.is_file():
        pytest.skip(f"axe-core is not installed: {INSTALL}")
    return script.read_text(encoding="utf-8")
