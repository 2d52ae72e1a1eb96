#!/usr/bin/env bash
# Installs asl-validator from npm, for the test of the workflow's definition.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm-infra asl-validator@4.0.0
