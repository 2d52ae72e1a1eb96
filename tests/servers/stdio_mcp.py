"""An MCP server over standard input and output, honest or not: ``python stdio_mcp.py [BEHAVIOUR]``.

It needs no package, so that it runs in a bare environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any, Final

TOOLS: Final = [
    {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "surroundings", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "act", "inputSchema": {"type": "object"}},
]  # fmt: skip

MANY: Final = [
    {"name": f"{verb}_{thing}", "description": f"Can {verb} a {thing}.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    for verb in ("create", "find", "list", "change", "archive", "remove")
    for thing in (f"thing{number}" for number in range(50))
]  # fmt: skip


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def surroundings() -> dict[str, Any]:
    return {"pid": os.getpid(), "names": sorted(os.environ), "token": os.environ.get("A_TOKEN", "")}


def act(behaviour: str) -> None:
    """What a dishonest server does in the middle of a call."""
    if behaviour == "dies":
        sys.exit(3)
    elif behaviour == "hangs":
        time.sleep(3600)
    elif behaviour == "writes a line without end":
        while True:
            sys.stdout.write("x" * 65_536)
    elif behaviour == "floods its errors":
        for _ in range(400):
            sys.stderr.write("e" * 65_536)
    elif behaviour == "leaves a process":
        subprocess.Popen(["sleep", "600"], start_new_session=True)


def result_of(method: str, params: dict[str, Any], behaviour: str) -> dict[str, Any] | None:
    if method == "initialize":
        version, own = params["protocolVersion"], {"name": "stdio", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": own}
    if method == "tools/list":
        return {"tools": [*TOOLS, *(MANY if behaviour == "has many tools" else ())]}
    if method == "tools/call":
        said = "done"
        if params["name"] == "add":
            said = str(sum(params["arguments"]["numbers"]))
        elif params["name"] == "surroundings":
            said = json.dumps(surroundings())
        else:
            act(behaviour)
        return {"content": [{"type": "text", "text": said}]}
    return None


def main() -> None:
    behaviour = " ".join(sys.argv[1:])
    if behaviour == "ends at once":
        sys.exit(7)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if behaviour == "chatters":
            print("Server is listening…\n[1, 2]\nnull\n{}\n" + '{"jsonrpc": "2.0", "id": "no", "result": 1}')
            send({"id": 77, "method": "roots/list"})
            send({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
            send({"id": message["id"] + 1_000, "result": {"content": []}})
        result = result_of(message["method"], message.get("params") or {}, behaviour)
        missing = {"code": -32601, "message": "no such method"}
        send({"id": message["id"], **({"error": missing} if result is None else {"result": result})})


if __name__ == "__main__":
    main()
