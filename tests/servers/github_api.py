"""A fake GitHub on loopback: the REST and GraphQL calls that the MCP server makes for the tools we use.

Strict: every request needs a bearer token and the API version that GitHub's clients send, a path that is not served
fails the test (`FakeGitHub.unexpected`), a GraphQL query must declare the variables it uses. Answers have GitHub's own
shapes; paths are those of GitHub Enterprise (``/api/v3``, ``/api/graphql``), because the MCP server uses plain HTTP
only for loopback hosts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMIT = "1f2e3d4c5b6a798897a6b5c4d3e2f10011223344"


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository: files by path, issues as (number, title), and who may see it (None: everyone)."""

    owner: str
    name: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    issues: tuple[tuple[int, str], ...] = ()
    readers: frozenset[str] | None = None

    def seen_by(self, login: str) -> bool:
        return self.readers is None or login in self.readers


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived. ``login``: the owner of its token, empty for an invalid one."""

    method: str
    path: str
    login: str


HELLO = Repository(
    "octo",
    "hello",
    {"README.md": b"# Hello\n\nThe answer is 42.\n", "src/app.py": b"print('hello')\n"},
    ((7, "Crash on start"), (9, "Document the flags")),
)
SECRETS = Repository("ana", "plans", {"PLAN.md": b"Ana's plan\n"}, readers=frozenset({"ana"}))


class _Answer(Exception):
    def __init__(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers or {}


@dataclass
class FakeGitHub:
    """The server. ``tokens`` maps tokens to logins; ``limited``: logins whose rate limit is used up.

    ``reset_in``: seconds reported to a limited login. Use as a context manager.
    """

    tokens: dict[str, str]
    repositories: tuple[Repository, ...] = (HELLO, SECRETS)
    limited: set[str] = field(default_factory=set)
    reset_in: int = 600
    requests: list[Seen] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    created: list[tuple[str, str]] = field(default_factory=list)

    def __enter__(self) -> FakeGitHub:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length) if length else b""
                try:
                    fake.answer(self.command, self.path, dict(self.headers.items()), body)
                except _Answer as answer:
                    content = json.dumps(answer.body).encode()
                    self.send_response(answer.status)
                    for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(content)

            do_GET = do_POST = do_HEAD = _serve  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The value of ``GITHUB_HOST``."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def logins(self) -> set[str]:
        """The logins whose tokens have been used so far."""
        return {seen.login for seen in self.requests}

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> NoReturn:
        """Answer one request by raising `_Answer`."""
        parts = urlsplit(target)
        login = self._login(headers)
        self.requests.append(Seen(method, parts.path, login))
        if not login:
            raise _Answer(401, {"message": "Bad credentials", "status": "401"})
        if login in self.limited:
            self._rate_limited()
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        path = tuple(unquote(part) for part in parts.path.strip("/").split("/"))
        self._route(method, path, query, login, body)

    def _login(self, headers: Mapping[str, str]) -> str:
        kind, _, token = {name.lower(): value for name, value in headers.items()}.get(
            "authorization", ""
        ).partition(" ")
        return self.tokens.get(token, "") if kind == "Bearer" else ""

    def _rate_limited(self) -> NoReturn:
        headers = {
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int(time.time()) + self.reset_in),
            "X-RateLimit-Resource": "core",
        }
        raise _Answer(403, {"message": "API rate limit exceeded for user ID 1."}, headers)

    def _route(
        self, method: str, path: tuple[str, ...], query: Mapping[str, str], login: str, body: bytes
    ) -> NoReturn:
        match (method, *path):
            case ("POST", "api", "graphql"):
                self._graphql(json.loads(body), login)
            case ("GET", "api", "v3", "user"):
                raise _Answer(200, {"login": login, "id": 1, "html_url": f"https://github.com/{login}"})
            case ("GET", "api", "v3", "search", "repositories"):
                self._search(query, login)
            case ("GET", "api", "v3", "repos", owner, name):
                raise _Answer(200, _repository(self._find(owner, name, login)))
            case ("GET", "api", "v3", "repos", owner, name, "git", "ref", "heads", "main"):
                self._find(owner, name, login)
                ref = {"ref": "refs/heads/main", "object": {"sha": COMMIT, "type": "commit"}}
                raise _Answer(200, ref)
            case ("GET", "api", "v3", "repos", owner, name, "contents", *rest):
                self._contents(self._find(owner, name, login), "/".join(rest))
            case ("GET", "api", "v3", "repos", owner, name, "git", "trees", _):
                raise _Answer(200, _tree(self._find(owner, name, login)))
            case ("POST", "api", "v3", "repos", owner, name, "issues"):
                self._find(owner, name, login)
                title = json.loads(body)["title"]
                self.created.append((login, title))
                url = f"https://github.com/{owner}/{name}/issues/99"
                raise _Answer(201, {"id": 99, "number": 99, "title": title, "html_url": url})
            case _:
                self.unexpected.append(f"{method} /{'/'.join(path)}")
                raise _Answer(501, {"message": "the fake does not serve this"})

    def _find(self, owner: str, name: str, login: str) -> Repository:
        for repository in self.repositories:
            if (repository.owner, repository.name) == (owner, name) and repository.seen_by(login):
                return repository
        raise _Answer(404, {"message": "Not Found", "status": "404"})

    def _search(self, query: Mapping[str, str], login: str) -> NoReturn:
        if "q" not in query:
            raise _Answer(
                422, {"message": "Validation Failed", "errors": [{"field": "q", "code": "missing"}]}
            )
        word = query["q"].split()[0].lower()
        items = [
            _repository(repository)
            for repository in self.repositories
            if repository.seen_by(login) and word in f"{repository.owner}/{repository.name}"
        ]
        raise _Answer(200, {"total_count": len(items), "incomplete_results": False, "items": items})

    def _contents(self, repository: Repository, path: str) -> NoReturn:
        if path in repository.files:
            raise _Answer(200, _file(repository, path))
        folder = f"{path}/" if path else ""
        names = sorted(
            {name[len(folder) :].split("/")[0] for name in repository.files if name.startswith(folder)}
        )
        if not names:
            raise _Answer(404, {"message": "Not Found", "status": "404"})
        raise _Answer(200, [_entry(repository, folder + name) for name in names])

    def _graphql(self, request: Mapping[str, Any], login: str) -> NoReturn:
        query, variables = request["query"], request.get("variables", {})
        for name in variables:
            if f"${name}" not in query:
                raise _Answer(200, {"errors": [{"message": f"Variable ${name} is not used"}]})
        if "issues(" not in query:
            self.unexpected.append(query[:80])
            raise _Answer(200, {"errors": [{"message": "the fake does not serve this"}]})
        try:
            repository = self._find(variables["owner"], variables["repo"], login)
        except _Answer:
            name = f"{variables['owner']}/{variables['repo']}"
            message = f"Could not resolve to a Repository with the name '{name}'."
            error = {"type": "NOT_FOUND", "path": ["repository"], "message": message}
            raise _Answer(200, {"data": {"repository": None}, "errors": [error]}) from None
        raise _Answer(200, {"data": {"repository": _issues(repository)}})


def _repository(repository: Repository) -> dict[str, Any]:
    full = f"{repository.owner}/{repository.name}"
    return {
        "id": 1,
        "name": repository.name,
        "full_name": full,
        "owner": {"login": repository.owner, "id": 2},
        "private": repository.readers is not None,
        "html_url": f"https://github.com/{full}",
        "description": f"The repository {full}",
        "default_branch": "main",
        "stargazers_count": 3,
        "language": "Python",
        "updated_at": "2026-11-01T00:00:00Z",
    }


def _blob_sha(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _file(repository: Repository, path: str) -> dict[str, Any]:
    content = repository.files[path]
    full = f"{repository.owner}/{repository.name}"
    return {
        "type": "file",
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "sha": _blob_sha(content),
        "size": len(content),
        "encoding": "base64",
        "content": base64.b64encode(content).decode(),
        "html_url": f"https://github.com/{full}/blob/main/{path}",
        "download_url": f"https://raw.githubusercontent.com/{full}/main/{path}",
    }


def _entry(repository: Repository, path: str) -> dict[str, Any]:
    kind = "file" if path in repository.files else "dir"
    name = path.rsplit("/", 1)[-1]
    return {"type": kind, "name": name, "path": path, "sha": COMMIT, "size": 0}


def _tree(repository: Repository) -> dict[str, Any]:
    entries = [
        {"path": path, "mode": "100644", "type": "blob", "sha": _blob_sha(content), "size": len(content)}
        for path, content in sorted(repository.files.items())
    ]
    return {"sha": COMMIT, "tree": entries, "truncated": False}


def _issues(repository: Repository) -> dict[str, Any]:
    nodes = [
        {
            "number": number,
            "title": title,
            "body": f"{title}: the details.",
            "state": "OPEN",
            "databaseId": 1000 + number,
            "author": {"login": "octo"},
            "createdAt": "2026-10-01T00:00:00Z",
            "updatedAt": "2026-10-02T00:00:00Z",
            "labels": {"nodes": [{"name": "bug", "id": "L1", "description": "A bug"}]},
            "assignees": {"nodes": []},
            "comments": {"totalCount": 2},
            "issueFieldValues": {"nodes": []},
        }
        for number, title in repository.issues
    ]
    page = {"hasNextPage": False, "hasPreviousPage": False, "startCursor": "", "endCursor": ""}
    issues = {"nodes": nodes, "pageInfo": page, "totalCount": len(nodes)}
    return {"issues": issues, "isPrivate": repository.readers is not None}
