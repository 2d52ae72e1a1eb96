"""Receive webhooks: verify each, fetch the answer, print it.

    pip install standardwebhooks httpx
    WEBHOOK_SECRET=whsec_… DUALTRACK_API_KEY=dt_… DUALTRACK_URL=https://chat.example.org python receive.py

It listens on 127.0.0.1, port 9000 (PORT): put a proxy with TLS in front of it. The key needs the scope `read`.
"""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
stack = httpx.Client(
    base_url=os.environ["DUALTRACK_URL"],
    headers={"Authorization": f"Bearer {os.environ['DUALTRACK_API_KEY']}"},
    timeout=10,
)
seen: set[str] = (
    set()
)  # a message may come twice, under the same id; keep the ids where they survive a restart


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 100_000))
        try:
            event = webhook.verify(body, dict(self.headers.items()))
        except WebhookVerificationError:
            self._answer(401)
            return
        self._answer(204)  # first: whoever answers after five seconds gets it again
        message_id = self.headers["webhook-id"]
        if message_id not in seen:
            seen.add(message_id)
            handle(event)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.flush()


def handle(event: dict) -> None:
    if event["type"] == "chat.done":
        chat = stack.get(f"/v1/chats/{event['data']['chat_id']}").raise_for_status().json()
        print(chat["response"], flush=True)
    else:
        print(event["type"], event["data"], flush=True)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
