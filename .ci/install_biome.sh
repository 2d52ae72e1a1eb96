#!/usr/bin/env bash
# Installs Biome from npm, which formats and checks the page's own code (biome.json, tests/unit/test_page_code.py).
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" biome @biomejs/biome@2.6.8
