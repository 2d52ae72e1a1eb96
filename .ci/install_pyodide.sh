#!/usr/bin/env bash
# Installs CPython 3.13 as WebAssembly from npm: it compiles the layers' bytecode where no Python 3.13 can be had.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm-pyodide pyodide@0.29.5
