"""Ask a list of questions and write their answers, sources and costs as a report.

    uv run python examples/nightly/report.py questions.txt

`questions.txt` has a question a line. The answers go to `questions.json` as they come, the report to `questions.md` and
`questions.html`. Started again, it asks only what has no answer yet; a question that was sent but whose answer was lost
is sent under the same idempotency key, so it is neither asked nor paid twice within 24 hours. A new list of answers
begins where `questions.json` is gone.

Needs httpx. DUALTRACK_URL: the API (default: the local stack). DUALTRACK_API_KEY: a key of the scope `chat` (default: a
token of the local stack). Exit 0 if every question is answered, 1 if some are not.
"""

import argparse
import html
import json
import os
import sys
import time
import uuid
from pathlib import Path

import httpx

URL = os.environ.get("DUALTRACK_URL", "http://127.0.0.1:8000").rstrip("/")
ENDED = ("done", "failed", "cancelled")
LATER = (429, 500, 502, 503, 504)
TRIES = 6
LOOK_SECONDS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask a list of questions and write a report.")
    parser.add_argument("questions", type=Path)
    parser.add_argument("--profile", default="assistant")
    wanted = parser.parse_args()
    asked = [line.strip() for line in wanted.questions.read_text().splitlines() if line.strip()]
    kept = wanted.questions.with_suffix(".json")
    night = json.loads(kept.read_text()) if kept.exists() else {"night": str(uuid.uuid4()), "answers": {}}
    with client() as http:
        try:
            for question in asked:
                if question in night["answers"]:
                    continue
                save(kept, json.dumps(night))  # the night's id, before anything is asked
                night["answers"][question] = answered(http, question, wanted.profile, night["night"])
                save(kept, json.dumps(night))
                print(f"{night['answers'][question]['status']:<8}{question}", file=sys.stderr)
        except (httpx.HTTPError, Refused) as error:
            print(f"Stopped: {str(error).rstrip('.')}. Start it again to go on.", file=sys.stderr)
    chats = [(question, night["answers"].get(question)) for question in asked]
    save(wanted.questions.with_suffix(".md"), markdown(chats))
    save(wanted.questions.with_suffix(".html"), page(chats))
    return 0 if all(chat and chat["status"] == "done" for _, chat in chats) else 1


class Refused(Exception):
    """The API's own words."""


def client() -> httpx.Client:
    token = os.environ.get("DUALTRACK_API_KEY")
    if not token:
        token = httpx.get(f"{URL}/dev/token").raise_for_status().json()["token"]
    return httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def answered(http: httpx.Client, question: str, profile: str, night: str) -> dict:
    """The chat object at its end. Each question is a conversation of its own."""
    key = str(uuid.uuid5(uuid.UUID(night), f"{profile}\n{question}"))
    body = {"message": question, "profile": profile}
    chat = call(http, "POST", "/v1/chats?wait=25", json=body, headers={"Idempotency-Key": key})
    while chat["status"] not in ENDED:
        if chat["status"] == "paused":
            raise Refused(f"“{question}” waits for a decision: dualtrack pauses")
        time.sleep(LOOK_SECONDS)
        chat = call(http, "GET", f"/v1/chats/{chat['chat_id']}")
    return chat


def call(http: httpx.Client, method: str, path: str, **more: object) -> dict:
    """An answer; a busy or unreachable stack is asked again, as late as it says."""
    for wait in (*(2**number for number in range(TRIES - 1)), None):
        try:
            answer = http.request(method, path, **more)  # type: ignore[arg-type]
        except httpx.TransportError:
            if wait is None:
                raise
            time.sleep(wait)
            continue
        if answer.status_code in LATER and wait is not None:
            time.sleep(float(answer.headers.get("Retry-After", wait)))
            continue
        if answer.is_error:
            raise Refused(answer.json()["error"]["message"])
        return answer.json()
    raise AssertionError


def save(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)


def cost(chats: list) -> str:
    ended = [chat for _, chat in chats if chat]
    paid = sum(chat["credits_used"] for chat in ended)
    dollars = sum(chat["memory"]["dollars"] for chat in ended)
    fictional = " (fictional: the offline model answered)" if any(chat["fictional"] for chat in ended) else ""
    return f"{len(ended)} of {len(chats)} asked: {paid} credits, ${dollars:.4f} of models{fictional}"


def answer_of(chat: dict | None) -> str:
    if chat is None:
        return "Not asked yet."
    if chat["status"] != "done":
        return f"No answer: {chat.get('error', {}).get('message', chat['status'])}"
    return chat["response"]


def markdown(chats: list) -> str:
    parts = ["# Report", cost(chats)]
    for question, chat in chats:
        parts += [f"## {question}", answer_of(chat)]
        sources = chat["sources"] if chat else []
        parts += ["\n".join(f"- {source['title']} {source.get('url') or ''}".rstrip() for source in sources)]
        parts += [f"*{cost([(question, chat)])}*"]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(chats: list) -> str:
    """Answers are other people's text: all of it is escaped."""
    parts = ["<!doctype html><html lang=en><meta charset=utf-8><title>Report</title><h1>Report</h1>"]
    parts += [f"<p>{html.escape(cost(chats))}</p>"]
    for question, chat in chats:
        parts += [f"<h2>{html.escape(question)}</h2>"]
        parts += [f'<p style="white-space: pre-wrap">{html.escape(answer_of(chat))}</p>']
        titles = [html.escape(source["title"]) for source in (chat["sources"] if chat else [])]
        parts += [f"<ul>{''.join(f'<li>{title}' for title in titles)}</ul>"] if titles else []
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
