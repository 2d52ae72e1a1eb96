#!/usr/bin/env bash
# Installs MCP's reference server and conformance suite from npm, for the tests that need them.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/conformance@0.2.0-alpha.12
