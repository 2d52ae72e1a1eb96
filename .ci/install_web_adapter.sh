#!/bin/sh
# Builds AWS Lambda Web Adapter for tests (crates.io's newest, of the layer's series) into a folder (default
# .build/web-adapter), once. Needs Cargo. The tests that use it skip with a reason when it is absent.
set -eu
version=1.0.0-rc1
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${WEB_ADAPTER_DIR:-$root/.build/web-adapter}}
[ -x "$folder/bin/lambda-adapter" ] && exit 0

# as for development: the release, optimised over all its crates, takes twice the time
CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug lambda_web_adapter --version "$version" --root "$folder"
