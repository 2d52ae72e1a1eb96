"""The page's size and first paint through a stack's front: the sign-in page, nothing cached.

``uv run --group test python -m bench.page_load [ROUNDS] [URL]``, beside ``uv run dualtrack dev``. Bytes are
uncompressed (CloudFront compresses them). Needs Chromium (``bash .ci/install_chromium.sh``).
"""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING

from tests.clients.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Response

PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def measure(browser: Browser, url: str) -> tuple[float, int, int]:
    """First contentful paint in milliseconds, files, bytes."""
    context = browser.new_context()
    page = context.new_page()
    seen: list[Response] = []
    page.on("response", lambda response: seen.append(response))  # noqa: PLW0108 - Playwright marks the function
    page.goto(url, wait_until="networkidle")
    paint = float(page.wait_for_function(PAINT).json_value())
    weight = sum(len(response.body()) for response in seen if response.ok)
    context.close()
    return paint, len(seen), weight


def main() -> None:
    """Print the median and the extremes."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    url = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8000"
    with chromium() as browser:
        loads = [measure(browser, url) for _ in range(rounds)]
    paints = sorted(paint for paint, _, _ in loads)
    _, files, weight = loads[-1]
    print(f"first paint {statistics.median(paints):.0f} ms ({paints[0]:.0f} to {paints[-1]:.0f})")
    print(f"{files} files, {weight / 1000:.0f} KB")


if __name__ == "__main__":
    main()
