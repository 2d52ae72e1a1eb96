#!/usr/bin/env bash
# Builds an OpenTelemetry Collector that receives OTLP and writes files, for the test that sends spans to a real one.
# Needs Go; a minute and a half on two idle cores. The test skips with a reason without it.
set -euo pipefail

source "$(dirname "$0")/go_env.sh"

version=v0.160.0
stable=v1.66.0
binary="$cache/bin/otelcol"
is_installed otelcol "$version" && exit
need_go

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS="-mod=mod -trimpath -buildvcs=false"

collector=go.opentelemetry.io/collector
contrib=github.com/open-telemetry/opentelemetry-collector-contrib
cat >builder.yaml <<YAML
dist: {name: otelcol, output_path: ./source}
receivers: [{gomod: $collector/receiver/otlpreceiver $version}]
exporters: [{gomod: $contrib/exporter/fileexporter $version}]
providers:
  - gomod: $collector/confmap/provider/envprovider $stable
  - gomod: $collector/confmap/provider/fileprovider $stable
YAML
# The builder only writes the source: it would also tidy the modules, which fetches those of all their tests.
GOBIN="$work" go install "$collector/cmd/builder@$version"
./builder --config builder.yaml --skip-get-modules --skip-compilation 2>builder.log || { cat builder.log >&2; exit 1; }
cd source
go mod init otelcol 2>/dev/null
go get "$collector/otelcol@$version" "$collector/receiver/otlpreceiver@$version" \
    "$contrib/exporter/fileexporter@$version" \
    "$collector/confmap/provider/envprovider@$stable" "$collector/confmap/provider/fileprovider@$stable" 2>get.log \
    || { cat get.log >&2; exit 1; }
go build -o "$binary.new" . 2>build.log || { cat build.log >&2; exit 1; }
mv "$binary.new" "$binary"
note_installed otelcol "$version"
