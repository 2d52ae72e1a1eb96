import java.nio.file.Path;
import org.neo4j.harness.Neo4j;
import org.neo4j.harness.Neo4jBuilders;

public class Neo4jServer {
    public static void main(String[] given) throws Exception {
        Neo4j server = Neo4jBuilders.newInProcessBuilder(Path.of(given[0])).withDisabledServer().build();
        System.out.println(server.boltURI());
        System.out.flush();
        while (System.in.read() >= 0) { }
        server.close();
    }
}
