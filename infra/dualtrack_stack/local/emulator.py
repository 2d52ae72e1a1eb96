"""The emulator behind a guard: ``python -m dualtrack_stack.local.emulator [ORIGIN …]``, run as ``python -m ministack``
is.

The emulator serves every origin and every host name, and accepts the key ``test``, any twelve digits and the root's key
with any signature as the account's root, even with AUTH=true. Behind the guard a request needs a valid signature by the
key of this start (``AWS_ACCESS_KEY_ID``) or by one that the emulator issued: sessions of roles, keys of IAM users. What
AWS serves without a signature is served without one: the REST API, Cognito's public operations and keys, and the health
check of the local stack itself.

The ``ORIGIN``s are the pages that may call the REST API (the setting ALLOWED_ORIGINS).
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from dualtrack_stack.local.account_state import whole
from dualtrack_stack.local.guard import LOOPBACK, Guard, foreign, headers_of, refuse
from dualtrack_stack.local.read_once import read_once
from dualtrack_stack.local.workers import bound
from ministack import app as ministack
from ministack.core import lambda_runtime, persistence, sigv4
from ministack.core.iam_evaluator import ResolvedCredential, is_root_access_key, resolve_credential
from ministack.core.router import extract_access_key_id
from ministack.services import dynamodb, stepfunctions, sts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Config = dict[str, Any]
    Task = Callable[[Config, Any, Any, Config], Any]

HEALTH: Final = "/_ministack/health"
_OWN_PATHS: Final = ("/_ministack/", "/_localstack/")
"""The emulator's own administration: not part of AWS, not used here, and protected by no policy."""

_API_HOST: Final = re.compile(r"[a-f0-9]{8}\.execute-api\.localhost(:[0-9]{1,5})?")
_API_PATH: Final = re.compile(r"/live(/.*)?", re.DOTALL)
_API_FULL_PATH: Final = re.compile(r"/_aws/execute-api/[a-f0-9]{8}/live(/.*)?", re.DOTALL)
_HOSTS: Final = re.compile(f"{LOOPBACK.pattern}|{_API_HOST.pattern}")
_POOL_KEYS: Final = re.compile(r"/[\w-]+/\.well-known/(jwks\.json|openid-configuration)", re.ASCII)
_COGNITO: Final = "AWSCognitoIdentityProviderService."
COGNITO_PUBLIC: Final = frozenset(
    {
        "ChangePassword",
        "ConfirmForgotPassword",
        "ConfirmSignUp",
        "ForgotPassword",
        "GetTokensFromRefreshToken",
        "GetUser",
        "GlobalSignOut",
        "InitiateAuth",
        "ResendConfirmationCode",
        "RespondToAuthChallenge",
        "RevokeToken",
        "SignUp",
    }
)
"""A user client's calls to a pool; AWS accepts these without a signature (``authtype`` none)."""

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


def is_api(headers: Mapping[str, str], path: str) -> bool:
    """Whether a request is for the deployed REST API, which has an authorizer of its own."""
    host = headers.get("host", "")
    return bool(_API_PATH.fullmatch(path) if _API_HOST.fullmatch(host) else _API_FULL_PATH.fullmatch(path))


def is_public(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether AWS would serve a request without a signature."""
    path = scope["path"]
    if scope["type"] == "http" and is_api(headers, path):
        return True
    if not LOOPBACK.fullmatch(headers.get("host", "")):
        return False
    if scope.get("method") == "GET":
        return path == HEALTH or bool(_POOL_KEYS.fullmatch(path))
    service, _, operation = headers.get("x-amz-target", "").rpartition(".")
    asked = (scope.get("method"), path, f"{service}.")
    return asked == ("POST", "/", _COGNITO) and operation in COGNITO_PUBLIC


class SignedOnly:
    """ASGI middleware: non-public requests need the valid signature of a known key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or is_public(scope, headers := headers_of(scope)):
            return await self._app(scope, receive, send)
        if scope["path"].startswith(_OWN_PATHS):
            return await refuse(scope, send, "the emulator's own administration is closed")
        if scope["type"] == "websocket":
            return await refuse(scope, send, "no WebSocket API is deployed")
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        signature = _signature(headers, query)
        secret = _secret(signature.access_key_id, headers, query) if signature else None
        if signature is None or secret is None:
            return await refuse(scope, send, "it is not signed with a key that this stack has issued")
        messages = await _whole(receive)
        body = b"".join(message.get("body", b"") for message in messages)
        if not _matches(signature, secret, scope, headers, query, body):
            return await refuse(scope, send, "its signature is wrong or too old")
        return await self._app(scope, _again(messages, receive), send)


def _signature(headers: Mapping[str, str], query: Mapping[str, list[str]]) -> sigv4.HeaderSignature | None:
    """The signature of the header, else of the query; None if its key is not the one that the emulator reads."""
    authorization = headers.get("authorization")
    if authorization is None:
        algorithm = query.get("X-Amz-Algorithm", [""])[0]
        signature = sigv4.parse_query_signature(query)
    else:
        algorithm = authorization.split(" ", 1)[0]
        signature = sigv4.parse_header_signature(headers)
    if algorithm != _ALGORITHM or not isinstance(signature, sigv4.HeaderSignature):
        return None
    return signature if signature.access_key_id == extract_access_key_id(dict(headers), dict(query)) else None


def _secret(access_key: str, headers: Mapping[str, str], query: Mapping[str, list[str]]) -> str | None:
    """The secret of this start's root key, or of a key that the emulator issued and that is still valid."""
    if is_root_access_key(access_key) and access_key != os.environ["AWS_ACCESS_KEY_ID"]:
        return None
    token = headers.get("x-amz-security-token") or query.get("X-Amz-Security-Token", [""])[0]
    credential = resolve_credential(access_key, session_token=token)
    return credential.secret_access_key if isinstance(credential, ResolvedCredential) else None


def _matches(
    signature: sigv4.HeaderSignature,
    secret: str,
    scope: Scope,
    headers: Mapping[str, str],
    query: Mapping[str, list[str]],
    body: bytes,
) -> bool:
    presigned = "authorization" not in headers
    try:
        late = (
            sigv4.presigned_request_is_expired(signature.amz_date, query.get("X-Amz-Expires", [""])[0])
            if presigned
            else sigv4.request_time_failure(signature)
        )
    except ValueError:  # an invalid date or number
        return False
    path = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
    wrong = sigv4.header_signature_failure(
        signature, secret, scope["method"], path, query, headers, body, presigned=presigned
    )
    return not late and wrong is None


async def _whole(receive: Receive) -> list[Message]:
    """The messages of a request up to the end of its body, or until the client disconnects."""
    messages = [await receive()]
    while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Replays these messages, then passes on further ones."""
    kept = iter(messages)

    async def replay() -> Message:
        try:
            return next(kept)
        except StopIteration:
            return await receive()

    return replay


def guarded(app: Any, origins: Collection[str] = ()) -> Guard:
    """The emulator's app as the local stack serves it; ``origins`` may call the REST API alone."""

    def check(scope: Scope) -> str:
        headers = headers_of(scope)
        return foreign(headers, _HOSTS, origins if is_api(headers, scope["path"]) else ())

    return Guard(SignedOnly(app), check)


def secretly(issue: Callable[[Config], dict[str, str]], salt: bytes) -> Callable[[Config], dict[str, str]]:
    """Issues role sessions to functions with random secrets. The emulator derives them from the names of
    function and role, which are the same on every machine.
    """

    def issued(config: Config) -> dict[str, str]:
        credentials = issue(config)
        key = credentials["AWS_ACCESS_KEY_ID"]
        secret, token = (hmac.new(salt, f"{part}:{key}".encode(), "sha256").hexdigest() for part in "st")
        session = {**sts._sessions[key], "SecretAccessKey": secret, "SessionToken": token}
        sts.register_session(key, session)
        return {**credentials, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}

    return issued


def timed(execute: Task) -> Task:
    """Runs a task whose ``TimeoutSeconds`` is an expression; the emulator only knows numbers."""

    def executed(state: Config, given: Any, execution: Any, context: Config) -> Any:
        if isinstance(state.get("TimeoutSeconds"), str):
            seconds = stepfunctions._jsonata_state_field(state, "TimeoutSeconds", "number", given, context)
            state = {**state, "TimeoutSeconds": seconds}
        return execute(state, given, execution, context)

    return executed


def _state_in(folder: Path) -> None:
    persistence.STATE_DIR = str(folder)


def main() -> None:
    """Serve like the emulator's own command, with its settings from the environment."""
    origins, sys.argv[1:] = sys.argv[1:], []
    # before the module that invokes functions takes the name over from there
    issued = secretly(lambda_runtime.execution_credentials, secrets.token_bytes(32))
    lambda_runtime.execution_credentials = issued  # type: ignore[bad-assignment] # no keyword is used
    stepfunctions._execute_task = timed(stepfunctions._execute_task)  # type: ignore[bad-assignment] # no keyword is used
    bound(lambda_runtime)
    read_once(dynamodb)
    saved = whole(ministack.save_all, _state_in, Path(os.environ["STATE_DIR"]).parent)
    ministack.save_all = saved  # type: ignore[bad-assignment] # no keyword is used
    ministack.app = guarded(ministack.app, origins)
    ministack.main()


if __name__ == "__main__":
    main()
