#!/usr/bin/env bash
# checkov over the templates of staging and prod, in an environment of its own: it brings some hundred packages.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GITHUB_MCP_IMAGE="registry.example/github/github-mcp-server:v2.1.0@sha256:$(printf 'a%.0s' {1..64})"
export GITHUB_MCP_PROBE_IMAGE="registry.example/busybox:1.37@sha256:$(printf 'b%.0s' {1..64})"
export ALARM_EMAIL=operators@example.org WAF=on
for stage in staging prod; do
    uv run --quiet --group test python -c "
import sys
from pathlib import Path
from dualtrack_stack.local.synth import IN_PLACE, synthesise_into
synthesise_into(Path(sys.argv[1]), '$stage', IN_PLACE)" "$folder/$stage/all"
    mkdir "$folder/$stage/templates"
    cp "$folder/$stage/all"/*.template.json "$folder/$stage/templates"
    uvx --quiet --from checkov==3.3.30 checkov --skip-download --config-file .ci/checkov.yaml -d "$folder/$stage/templates"
    echo "$stage: checkov has nothing to say."
done
