#!/bin/sh
# Fetches AWS's own DynamoDB engine for tests into a folder (default .build/dynamodb-local), once.
# Needs Java 17 or newer and Maven. The tests that use it skip with a reason when it is absent.
set -eu
version=3.0.0
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-${DYNAMODB_LOCAL_DIR:-$root/.build/dynamodb-local}}
[ -f "$folder/DynamoDBLocal-$version.jar" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dualtrack</groupId>
  <artifactId>dynamodb-local</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>software.amazon.dynamodb</groupId>
      <artifactId>DynamoDBLocal</artifactId>
      <version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" -DincludeScope=runtime
# complete or absent: a fetch that was cut leaves no half-filled folder
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv "$work/jars" "$folder"
