#!/bin/sh
# Fetches Adobe's S3Mock, a server of Amazon S3 Vectors for tests, into a folder (default .build/s3mock), once.
# Needs Java 17 or newer and Maven. The tests that use it skip with a reason when it is absent.
set -eu
version=5.2.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${S3MOCK_DIR:-$root/.build/s3mock}}
[ -f "$folder/s3mock-$version-exec.jar" ] && exit 0

. "$root/.ci/maven.sh"
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="com.adobe.testing:s3mock:$version:jar:exec" -DoutputDirectory="$work/jars"
keep_in "$folder"
