#!/usr/bin/env bash
# Installs the CDK's command line from npm, for the test that deploys with it.
set -euo pipefail
exec bash "$(dirname "$0")/npm_install.sh" npm-cdk "$(uv run --quiet --group test python -c 'from dualtrack_stack.cli.aws.cdk import PACKAGE; print(PACKAGE)')"
