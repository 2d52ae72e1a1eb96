"""OpenAI's API as the function `stream` finds it; what it consists of is loaded where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api.streamed import StreamedApi
from dualtrack.plugins.openai.declared import PATH, ROUTES

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import Router

    from dualtrack.api.streamed import StreamServices
    from dualtrack.errors import ApiError


def _open(services: StreamServices) -> Router:
    from dualtrack.plugins.openai.opened import open_door  # noqa: PLC0415 - it would double the cold start

    return open_door(services).routes()


def _refused(refusal: ApiError) -> Response:
    from dualtrack.plugins.openai.refusals import answer_to  # noqa: PLC0415 - only for those who call it

    return answer_to(refusal)


STREAMED: Final = StreamedApi("OpenAI's API", PATH, ROUTES, _open, _refused)
