#!/usr/bin/env bash
# Installs CPython 3.13 as WebAssembly from npm: it compiles the layers' bytecode without Python 3.13.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm-pyodide pyodide@0.29.5
