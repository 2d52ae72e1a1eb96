"""The HTTP API (CONTRACT 4): requests to the routes of `dualtrack.api.table`, answers and errors from them."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import json
    import time
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.event_handler import APIGatewayRestResolver, CORSConfig, Response
    from dualtrack.api.corpora import UPLOAD_CLIENT, CorpusServices
    from dualtrack.api.key_door import key_door
    from dualtrack.api.parameters import check_ids
    from dualtrack.api.request import Services, admit, claims_of
    from dualtrack.api.request_log import MESSAGE, NOT_SERVED, chat_of, request_line
    from dualtrack.api.route import KEY_PATH
    from dualtrack.api.table import ROUTES
    from dualtrack.api.users import UserPool
    from dualtrack.chat.cost_hold import cost_settings
    from dualtrack.chat.erase_user import Retention
    from dualtrack.chat.receipt import Deployment
    from dualtrack.errors import ApiError, DualtrackError, not_found
    from dualtrack.frozen import dumps
    from dualtrack.runtime.clients import LazyClient
    from dualtrack.runtime.environment import trace_header
    from dualtrack.runtime.executions import Executions
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import ApiStores, open_stores
    from dualtrack.tools.mcp.tokens import Connections

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aws_lambda_powertools.event_handler.exceptions import NotFoundError
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.api.route import ApiResponse, Route

logger = Logger()
settings = settings_from()
stores = open_stores(settings, ApiStores)
step_functions: Any = LazyClient("stepfunctions")
kms: Any = LazyClient("kms")
cognito: Any = LazyClient("cognito-idp")
user_pool = UserPool(cognito, settings.user_pool_id)
executions = Executions(step_functions, settings.state_machine_arn, trace_header)
connections = Connections(stores.cache, kms, settings.connections_key)
signer: Any = LazyClient("s3", UPLOAD_CLIENT)
corpora = CorpusServices(
    Executions(step_functions, settings.corpus_machine_arn), signer, settings.bodies_bucket
)
deployment = Deployment(json.loads(settings.aws_prices or "{}"), json.loads(settings.function_sizes or "{}"))
costs = cost_settings(settings)
retention = Retention(settings.ledger_retention_days, settings.token_hours)


def _cors(origins: Sequence[str]) -> CORSConfig | None:
    """Pages of these origins may call the API; if empty, only the API's own origin."""
    if not origins:
        return None
    return CORSConfig(
        allow_origin=origins[0],
        extra_origins=[*origins[1:]],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
        expose_headers=["Location", "Retry-After"],
        max_age=3600,
    )


app = APIGatewayRestResolver(
    cors=_cors(settings.allowed_origins), serializer=dumps, strip_prefixes=[KEY_PATH]
)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """An API Gateway REST proxy event → its response."""
    return app.resolve({**event}, context)


def _served(route: Route, serve: Callable[..., ApiResponse[object]]) -> Callable[..., Response[Any]]:
    """The route as the resolver calls it, with the path's parameters; each request leaves a line in the log."""

    def served(**path: str) -> Response[Any]:
        started, status, body = time.perf_counter(), 500, None
        try:
            answer = answered(**path)
        except Exception as error:
            status = _refusal(error).status
            raise
        else:
            status, body = answer.status, answer.body
            return _response(answer)
        finally:
            _log(f"{route.method.upper()} {route.path}", status, started, chat_of(path, body))

    def answered(**path: str) -> ApiResponse[object]:
        services = Services(
            stores,
            key_door(settings, stores.keys),
            executions,
            connections,
            user_pool,
            retention,
            corpora,
            settings,
            kms,
            deployment,
            settings.dualtrack_model,
            costs,
            settings.upgrade_message,
            settings.alarm_key_percent,
        )
        request = admit(app.current_event, services, route)
        app.append_context(user=request.user)
        check_ids(path)
        return serve(request, **path)

    return served


def _response(answer: ApiResponse[object]) -> Response[Any]:
    if answer.body is None:
        return Response(answer.status, body="")
    if isinstance(answer.body, bytes):
        return Response(answer.status, body=answer.body, headers={**answer.headers})
    return _json(answer.status, answer.body, answer.headers)


def _log(route: str, status: int, started: float, chat_id: str = "") -> None:
    claims = claims_of(app.current_event.raw_event)
    user = str(app.context.get("user") or claims.get("sub", ""))
    logger.info(MESSAGE, **request_line(route, status, time.perf_counter() - started, user, chat_id))


for declared in ROUTES:
    if declared.serve:
        rule = declared.path.replace("{", "<").replace("}", ">")
        app.route(rule, declared.method.upper())(_served(declared, declared.serve))


def _answer_error(error: Exception) -> Response[str]:
    """Every error in the contract's form; unexpected ones reveal no details."""
    if not isinstance(error, ApiError):
        logger.exception(
            "Could not be done this time" if isinstance(error, DualtrackError) else "Unexpected error"
        )
    refusal = _refusal(error)
    wait = refusal.extra.get("retry_after")
    return _json(refusal.status, refusal.body(), {"Retry-After": str(wait)} if wait else {})


def _refusal(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, DualtrackError):
        return ApiError("unavailable", "This could not be done right now. Try again.")
    return ApiError("internal", "Something went wrong on our side.")


def _not_served(error: NotFoundError) -> Response[str]:  # noqa: ARG001
    _log(NOT_SERVED, 404, time.perf_counter())
    return _answer_error(not_found())


app.exception_handler(Exception)(_answer_error)
app.not_found(_not_served)


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(status, "application/json", dumps(body), {"Cache-Control": "no-store", **(headers or {})})
