"""/v1/admin: for billing systems and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import models
from dualtrack.api.erasure import erase, must_be_there
from dualtrack.api.parameters import DAYS
from dualtrack.api.route import Accepted, Ok, Route
from dualtrack.api.spending import spending_of

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request

USER: Final = "/v1/admin/users/{user_id}"


@Route(
    "put",
    f"{USER}/plan",
    "Change a user's plan",
    models.PlanBody,
    access="admin",
    scopes=("admin:grant",),
    description="Applies at once; what was used today is deducted.",
)
def put_plan(request: Request, user_id: str) -> Ok[answers.Credits]:
    request.services.user_pool.must_have(user_id)
    body, now = request.body(models.PlanBody), request.stores.clock()
    return Ok(request.stores.ledger.set_plan(user_id, body.plan, now).balance(now))


@Route(
    "post",
    f"{USER}/grants",
    "Add credits to a user's pack, once per grant_id",
    models.GrantBody,
    access="admin",
    scopes=("admin:grant",),
    description="A billing system sends its payment id as `grant_id`, so that a repeat adds nothing.",
)
def post_grant(request: Request, user_id: str) -> Ok[answers.Credits]:
    request.services.user_pool.must_have(user_id)
    body, now = request.body(models.GrantBody), request.stores.clock()
    account = request.stores.ledger.grant(user_id, body.grant_id, body.credits, body.reason, now)
    return Ok(account.balance(now))


@Route(
    "get",
    f"{USER}/credits",
    "Read a user's balance",
    access="admin",
    scopes=("admin:read",),
    description="As the user sees it.",
)
def get_user_credits(request: Request, user_id: str) -> Ok[answers.Credits]:
    request.services.user_pool.must_have(user_id)
    return Ok(request.stores.ledger.load(user_id).balance(request.stores.clock()))


@Route(
    "get",
    f"{USER}/spending",
    "Read what a user's chats cost, by day, API key and agent",
    parameters=(DAYS,),
    access="admin",
    scopes=("admin:read",),
    description="Credits charged, and dollars by the price table.",
)
def get_user_spending(request: Request, user_id: str) -> Ok[answers.Spending]:
    request.services.user_pool.must_have(user_id)
    return Ok(spending_of(request.stores, user_id, request.value(DAYS)))


@Route(
    "delete",
    USER,
    "Erase a user and all their data",
    access="admin",
    description="The same as the user's own `DELETE /v1/me`.",
)
def delete_user(request: Request, user_id: str) -> Accepted[answers.Erasure]:
    must_be_there(request.services, user_id)
    return Accepted(erase(request.services, user_id))
