#!/usr/bin/env bash
# Installs actionlint, which checks the workflows of .github (tests/infra/test_pipeline.py).
set -euo pipefail
exec bash "$(dirname "$0")/go_install.sh" github.com/rhysd/actionlint/cmd/actionlint v1.7.12
