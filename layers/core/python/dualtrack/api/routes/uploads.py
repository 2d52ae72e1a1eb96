"""/v1/uploads: large files for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.api import models
from dualtrack.api.route import Created, Route
from dualtrack.api.uploads import announced_json

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request


@Route(
    "post",
    "/v1/uploads",
    "Get an address for uploading a file for a message",
    models.UploadBody,
    scopes=("chat",),
    description="It takes the announced bytes alone, up to 50 MB (an image 3.9 MB, a PDF 10 MB), for an hour. Then "
    "`POST /v1/chats` names the `upload_id` in place of `data`, once. At most five may be open.",
)
def post_upload(request: Request) -> Created[answers.Upload]:
    body = request.body(models.UploadBody)
    return Created(announced_json(request.stores, request.services.corpora, request.user, body))
