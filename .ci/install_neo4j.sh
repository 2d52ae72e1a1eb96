#!/bin/sh
# Fetches Neo4j for tests (its harness, real Bolt) into a folder (default .build/neo4j), once, and compiles its launcher.
# Needs Java 17 or newer and Maven. The tests that use it skip with a reason when it is absent.
set -eu
version=5.26.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${NEO4J_DIR:-$root/.build/neo4j}}
[ -f "$folder/neo4j-harness-$version.jar" ] && exit 0

. "$root/.ci/maven.sh"
fetch_with_dependencies org.neo4j.test neo4j-harness "$version"
javac -cp "$work/jars/*" -d "$work/jars" "$root/tests/servers/neo4j/Neo4jServer.java"
keep_in "$folder"
