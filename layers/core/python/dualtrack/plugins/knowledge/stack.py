"""What a stage has for collections: the function that reads documents and publishes a collection's versions."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from dualtrack_stack.stacks.function_spec import FunctionSpec, PluginStack

_READ: Final = FunctionSpec(
    "read_documents",
    "Works on a job that changes a collection of documents",
    seconds=300,  # state Ingest: 310 s
    memory=3008,  # a version of 100,000 chunks, the one before, and the vectors of both
    layers=("base", "claude", "search", "knowledge"),
    environment=("HISTORY_TABLE", "BODIES_BUCKET", "EMBED_FUNCTION"),
    indexes=True,
    permissions=lambda allow: [
        allow.corpora("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        allow.corpus_objects("GetObject", "PutObject"),
        allow.list_corpus_objects(),
        allow.embed(),
    ],
)

STACK: Final = PluginStack(
    functions=(_READ,),
    corpora=MappingProxyType({"documents": "read_documents"}),
)
