#!/bin/sh
# Fetches DynamoDB local, AWS's own engine, for tests into a folder (default .build/dynamodb-local), once.
# Needs Java 17 or newer and Maven. The tests that use it skip with a reason when it is absent.
set -eu
version=3.0.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${DYNAMODB_LOCAL_DIR:-$root/.build/dynamodb-local}}
[ -f "$folder/DynamoDBLocal-$version.jar" ] && exit 0

. "$root/.ci/maven.sh"
fetch_with_dependencies software.amazon.dynamodb DynamoDBLocal "$version"
keep_in "$folder"
