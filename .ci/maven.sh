# Sourced by the scripts that fetch test servers from Maven; a fetched folder is complete or absent.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fetch_with_dependencies GROUP ARTIFACT VERSION: the jars, into $work/jars
fetch_with_dependencies() {
    cat > "$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dualtrack</groupId>
  <artifactId>test-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>$1</groupId>
      <artifactId>$2</artifactId>
      <version>$3</version>
    </dependency>
  </dependencies>
</project>
POM
    mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jars" -DincludeScope=runtime
}

# keep_in FOLDER: moves the jars there; an interrupted fetch never gets here
keep_in() {
    mkdir -p "$(dirname "$1")"
    rm -rf "$1"
    mv "$work/jars" "$1"
}
