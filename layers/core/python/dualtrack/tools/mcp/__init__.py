"""Tools of MCP servers: which servers there are, what they offer, whose token is used, how they are called.

``config``, ``specs``, ``catalogue`` and ``tokens`` are light (boto3 at most); ``client`` and ``execute``
load the ``mcp`` package and belong to the function ``github`` alone (DESIGN 2.13).
"""
