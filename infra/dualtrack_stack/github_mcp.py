"""GitHub's MCP server, apart from the stack that runs it: this loads no CDK."""

from __future__ import annotations

from typing import Final

VERSION: Final = "v2.1.0"
"""The release that the tests run against; the image must have it as its tag."""
