#!/bin/sh
# Fetches Neo4j for tests (its harness, real Bolt) into a folder (default .build/neo4j), once, and compiles its launcher.
# Needs Java 17 or newer and Maven. The tests that use it skip with a reason when it is absent.
set -eu
version=5.26.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${NEO4J_DIR:-$root/.build/neo4j}}
[ -f "$folder/neo4j-harness-$version.jar" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dualtrack</groupId>
  <artifactId>neo4j</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.neo4j.test</groupId>
      <artifactId>neo4j-harness</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" -DincludeScope=runtime
# complete or absent: a fetch that was cut leaves no half-filled folder
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
javac -cp "$work/jars/*" -d "$work/jars" "$root/tests/servers/neo4j/Neo4jServer.java"
mv "$work/jars" "$folder"
