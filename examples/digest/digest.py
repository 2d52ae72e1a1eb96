"""Post the answers of a schedule to a chat room: Slack, Discord, Teams, Mattermost, or any that takes such webhooks.

    pip install standardwebhooks httpx
    WEBHOOK_SECRET=whsec_… DUALTRACK_API_KEY=dt_… DUALTRACK_URL=https://chat.example.org \
    ROOM_URL=https://hooks.slack.com/services/… python digest.py

It listens on 127.0.0.1, port 9000 (PORT): put a proxy with TLS in front of it. docs/recipes.md has the whole set-up.
The key is one of its own with the scope `chat`, by which the schedule was made: without `read` it reads only its own
chats, so nothing else that its user asks ever reaches the room.

A message is answered with 204 after the room has taken it. Else it comes again, under the same id, for four days.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

import httpx
from standardwebhooks import Webhook, WebhookVerificationError

ROOM = os.environ["ROOM_URL"]
POSTED = Path(os.environ.get("POSTED", "posted.txt"))  # the ids of messages that the room has
SECONDS = 2  # for each request: the webhook has to be answered within five
MOST = 1_900  # characters of a post; Discord takes 2,000
webhook = Webhook(os.environ["WEBHOOK_SECRET"])
stack = httpx.Client(
    base_url=os.environ["DUALTRACK_URL"],
    headers={"Authorization": f"Bearer {os.environ['DUALTRACK_API_KEY']}"},
    timeout=SECONDS,
)
one_at_a_time = Lock()  # the same message may come twice at once


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 100_000))
        try:
            event = webhook.verify(body, dict(self.headers.items()))
        except WebhookVerificationError:
            self._answer(401)
            return
        try:
            with one_at_a_time:
                post_once(self.headers["webhook-id"], event)
        except httpx.HTTPError as error:
            print(
                f"tried again later: {type(error).__name__}", flush=True
            )  # the address of a room is a secret
            self._answer(503)
        else:
            self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


def post_once(message_id: str, event: dict) -> None:
    if message_id in (POSTED.read_text().split() if POSTED.exists() else ()):
        return
    text = text_of(event["type"], event["data"])
    if text:
        name = "content" if urlsplit(ROOM).hostname == "discord.com" else "text"
        httpx.post(ROOM, json={name: text}, timeout=SECONDS).raise_for_status()
    with POSTED.open("a") as posted:
        posted.write(f"{message_id}\n")


def text_of(kind: str, data: dict) -> str:
    """What the room is told; empty for what is none of its business."""
    if kind == "schedule.refused":
        return f"There is no digest today ({data['error']}). The schedule is {data['status']}."
    if kind not in ("chat.done", "chat.failed", "chat.paused"):
        return ""
    found = stack.get(f"/v1/chats/{data['chat_id']}")
    if found.status_code in (403, 404):  # not one of this key, or deleted
        return ""
    chat = found.raise_for_status().json()
    if kind == "chat.failed":
        return f"There is no digest today: {data['error']}."
    if kind == "chat.paused":
        return "The digest waits for a decision of its owner."
    answer = chat["response"]
    return answer if len(answer) <= MOST else f"{answer[:MOST]}…"


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
