#!/usr/bin/env bash
# Installs what the page's tests need: the headless shell of Debian's Chromium, which Playwright drives, and axe-core from
# npm.
set -euo pipefail

if ! command -v chromium-headless-shell >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium-headless-shell >/dev/null
fi
exec bash "$(dirname "$0")/npm_install.sh" page axe-core@4.14.1
