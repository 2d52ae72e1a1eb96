"""/v1/keys: the user's API keys. Only a token makes, changes or revokes one: these routes have no scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import keys, models
from dualtrack.api.parameters import CANCEL
from dualtrack.api.route import Created, NoContent, Ok, Route

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request

KEYS: Final = "/v1/keys"
KEY: Final = f"{KEYS}/{{key_id}}"


@Route(
    "post",
    KEYS,
    "Make an API key",
    models.KeyBody,
    description="The answer has the key itself, once. A user has at most 20.",
)
def post_key(request: Request) -> Created[answers.NewKey]:
    body = request.body(models.KeyBody)
    if any(scope.startswith("admin:") for scope in body.scopes):
        request.identity.require_admin()
    return Created(keys.make_key(request.stores, request.user, body))


@Route(
    "get",
    KEYS,
    "List the API keys",
    description="What each may do, may spend and has spent; never a secret.",
)
def get_keys(request: Request) -> Ok[answers.Keys]:
    body: answers.Keys = {"keys": keys.list_keys(request.stores, request.user)}
    return Ok(body)


@Route(
    "patch",
    KEY,
    "Change an API key's name or caps",
    models.KeyChangeBody,
    description="A cap that is lowered below what is used lets no further chat begin; those that run are not stopped.",
)
def patch_key(request: Request, key_id: str) -> Ok[answers.Key]:
    return Ok(keys.change_key(request.stores, request.user, key_id, request.body(models.KeyChangeBody)))


@Route(
    "post",
    f"{KEY}/rotate",
    "Give an API key a new secret",
    models.RotationBody,
    description="The answer has the new key, once. The old one holds for `overlap` seconds more, at most 24 hours.",
)
def post_rotation(request: Request, key_id: str) -> Ok[answers.NewKey]:
    overlap = request.body(models.RotationBody).overlap
    return Ok(keys.rotate_key(request.stores, request.user, key_id, overlap))


@Route(
    "delete",
    KEY,
    "Revoke an API key",
    parameters=(CANCEL,),
    description="The next request with it is refused. Its running chats go on, unless they are cancelled as well.",
)
def delete_key(request: Request, key_id: str) -> NoContent:
    cancels = request.value(CANCEL)
    keys.revoke_key(request.stores, request.services.executions, request.user, key_id, cancels=cancels)
    return NoContent()
