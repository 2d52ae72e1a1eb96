"""The graph as a kind of corpus: files of nodes and relationships become one database."""
