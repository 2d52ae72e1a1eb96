"""Ask dualtrack with a tool that this program runs itself: how many files a folder of this machine has.

    uv run python examples/clients/own_tools.py "count_files folder=."

Needs httpx. DUALTRACK_URL: the API (default: the local stack). DUALTRACK_TOKEN: an ID token, or an API key with the
scope `chat` (default: a token of the local stack). Exit 0 if the chat was answered, 1 if it was not.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Any

import httpx

URL = os.environ.get("DUALTRACK_URL", "http://127.0.0.1:8000").rstrip("/")
COUNT_FILES = {
    "name": "count_files",
    "description": "Counts the files directly in a folder of the user's machine.",
    "input_schema": {
        "type": "object",
        "properties": {"folder": {"type": "string", "description": "Its path."}},
        "required": ["folder"],
    },
}


def count_files(folder: str) -> str:
    """What the tool does."""
    number = sum(path.is_file() for path in Path(folder).iterdir())
    return f"{number} files"


def decision(call: dict[str, Any]) -> dict[str, Any]:
    """The result of a call, or why there is none. What waits for a person is declined: nobody is here."""
    if call["kind"] != "client_tool":
        return {"id": call["id"], "approve": False, "reason": "Nobody is here to decide."}
    try:
        return {"id": call["id"], "result": count_files(**call["input"])}
    except OSError as error:
        return {"id": call["id"], "result": str(error), "is_error": True}


def main() -> int:
    """Print the answer."""
    token = (
        os.environ.get("DUALTRACK_TOKEN") or httpx.get(f"{URL}/dev/token").raise_for_status().json()["token"]
    )
    with httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        # with the same key, the request can be repeated: it returns the same chat, once it has ended or paused
        start = {"json": {"message": sys.argv[1], "tools": [COUNT_FILES]}, "params": {"wait": 25}}
        key = {"Idempotency-Key": str(uuid.uuid4())}
        while True:
            chat = http.post("/v1/chats", headers=key, **start).raise_for_status().json()
            if chat["status"] == "paused":
                decisions = [decision(call) for call in chat["pause"]["calls"]]
                decided = http.post(f"/v1/chats/{chat['chat_id']}/decisions", json={"decisions": decisions})
                decided.raise_for_status()
            elif chat["status"] != "running":
                print(chat["response"] or chat["error"]["message"])
                return 0 if chat["response"] else 1


if __name__ == "__main__":
    sys.exit(main())
