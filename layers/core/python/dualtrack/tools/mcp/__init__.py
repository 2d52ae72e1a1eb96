"""Tools of MCP servers: configuration, catalogue, tokens, calls.

``config``, ``specs``, ``catalogue`` and ``tokens`` are light (boto3 at most); ``client`` and ``execute`` load the
``mcp`` package, and only the function ``mcp`` uses them (DESIGN 2.13).
"""
