#!/usr/bin/env bash
# go_install.sh PACKAGE VERSION: installs a Go program into the cache's bin, once.
set -euo pipefail
source "$(dirname "$0")/go_env.sh"

package=$1
version=$2
name="${package##*/}"
is_installed "$name" "$version" && exit
need_go

# Outside any module, so no go.mod of the folder takes part.
cd "$(mktemp -d)"
GOFLAGS="-trimpath -buildvcs=false" GOBIN="$cache/bin" go install "$package@$version"
note_installed "$name" "$version"
