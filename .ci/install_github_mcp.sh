#!/usr/bin/env bash
# Installs GitHub's MCP server, in the version that the stack runs, for the tests that need the real one.
set -euo pipefail
exec bash "$(dirname "$0")/go_install.sh" github.com/github/github-mcp-server/v2/cmd/github-mcp-server v2.1.0
