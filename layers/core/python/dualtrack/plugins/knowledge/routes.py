"""/v1/collections: documents that agents search, the stage's and a user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api.parameters import CURSOR, LIMIT, QueryParameter
from dualtrack.api.route import Accepted, Created, NoContent, Ok, Route
from dualtrack.errors import Gone, invalid_request, not_found
from dualtrack.plugins.knowledge import bodies, manage
from dualtrack.plugins.knowledge.text import piece_in
from dualtrack.storage.pages import cursor_of, foreign_cursor, position_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from dualtrack import answers
    from dualtrack.api.request import Request
    from dualtrack.plugins.knowledge import types

    T = TypeVar("T")

COLLECTIONS: Final = "/v1/collections"
COLLECTION: Final = f"{COLLECTIONS}/{{collection_id}}"
DOCUMENT: Final = f"{COLLECTION}/documents/{{doc_id}}"


def _whole(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise invalid_request("from: must be a whole number, as `following` says it.")
    return int(text)


FROM: Final = QueryParameter(
    "from",
    "query",
    "Where the piece begins, as `following` of the one before says it",
    {"type": "integer", "minimum": 0, "default": 0},
    _whole,
)


@Route(
    "post",
    COLLECTIONS,
    "Make a collection",
    bodies.CollectionBody,
    scopes=("knowledge",),
    refused=("name_taken",),
    description="The user's own, at most 20; an administrator makes those of the stage, which agents name.",
)
def post_collection(request: Request) -> Created[types.Collection]:
    return Created(manage.make(request, request.body(bodies.CollectionBody)))


@Route(
    "get",
    COLLECTIONS,
    "List the collections",
    parameters=(CURSOR, LIMIT),
    scopes=("knowledge",),
    description="The stage's, and the user's own.",
)
def get_collections(request: Request) -> Ok[types.Collections]:
    listed, rest = _page(request, manage.visible(request))
    body: types.Collections = {
        "collections": [manage.collection_json(request.stores, one) for one in listed],
        **rest,
    }
    return Ok(body)


@Route(
    "get",
    COLLECTION,
    "Read a collection",
    scopes=("knowledge",),
    description="One of the stage's, or of the user's own.",
)
def get_collection(request: Request, collection_id: str) -> Ok[types.Collection]:
    return Ok(manage.collection_json(request.stores, manage.find(request, collection_id)))


@Route(
    "patch",
    COLLECTION,
    "Give a collection another name or description",
    bodies.CollectionChange,
    scopes=("knowledge",),
    refused=("name_taken",),
    description="An agent names a collection of the stage: under another name that agent does not find it.",
)
def patch_collection(request: Request, collection_id: str) -> Ok[types.Collection]:
    return Ok(manage.change(request, collection_id, request.body(bodies.CollectionChange)))


@Route(
    "delete",
    COLLECTION,
    "Delete a collection with its documents",
    scopes=("knowledge",),
    description="It is found by nobody any more and its jobs end; its objects are deleted within half an hour.",
)
def delete_collection(request: Request, collection_id: str) -> NoContent:
    manage.remove(request, collection_id)
    return NoContent()


@Route(
    "post",
    f"{COLLECTION}/documents",
    "Get addresses for uploading documents",
    bodies.DocumentsBody,
    scopes=("knowledge",),
    description="Each accepts the announced bytes alone, up to 100 MB, for 15 minutes. Then start a job.",
)
def post_documents(request: Request, collection_id: str) -> Created[answers.Uploads]:
    collection = manage.find(request, collection_id, to_change=True)
    return Created(manage.announce(request, collection, request.body(bodies.DocumentsBody).files))


@Route(
    "post",
    f"{COLLECTION}/jobs",
    "Read uploaded documents by a job",
    bodies.DocumentsJobBody,
    scopes=("knowledge",),
    description="What was there stays in use until it is done. A document of the same title is replaced, unchanged "
    "content is skipped, and a file that cannot be read is refused with a reason and does not stop the others.",
)
def post_documents_job(request: Request, collection_id: str) -> Accepted[types.CollectionJob]:
    collection = manage.find(request, collection_id, to_change=True)
    shown = manage.start(request, collection, request.body(bodies.DocumentsJobBody))
    return Accepted(shown, {"Location": shown["url"]})


@Route(
    "get",
    f"{COLLECTION}/jobs/{{job_id}}",
    "Read a job's progress",
    scopes=("knowledge",),
    description="Its status, and for each file the outcome, the reason of a refusal, and what has no text.",
)
def get_documents_job(request: Request, collection_id: str, job_id: str) -> Ok[types.CollectionJob]:
    jobs, collection = request.stores.corpus_jobs, manage.find(request, collection_id)
    job = jobs.find(collection.corpus, job_id)
    if job is None:
        raise not_found("There is no such job.")
    return Ok(manage.job_json(job, jobs.files(collection.corpus, job_id)))


@Route(
    "get",
    f"{COLLECTION}/documents",
    "List a collection's documents",
    parameters=(CURSOR, LIMIT),
    scopes=("knowledge",),
    description="In the order in which they were added.",
)
def get_documents(request: Request, collection_id: str) -> Ok[types.CollectedDocuments]:
    collection = manage.find(request, collection_id)
    listed, rest = _page(request, manage.current_documents(request.stores.corpora, collection.corpus))
    body: types.CollectedDocuments = {
        "documents": [manage.document_json(collection, document) for document in listed],
        **rest,
    }
    return Ok(body)


@Route(
    "get",
    DOCUMENT,
    "Read a document",
    parameters=(FROM,),
    scopes=("knowledge",),
    description="With a piece of its text, and where the next one begins.",
)
def get_document(request: Request, collection_id: str, doc_id: str) -> Ok[types.DocumentText]:
    collection = manage.find(request, collection_id)
    document = manage.document_of(request.stores, collection, doc_id)
    try:
        piece = piece_in(request.stores.corpora, collection.corpus, document.title, request.value(FROM))
    except Gone:
        raise not_found("There is no such document.") from None
    body: types.DocumentText = {
        **manage.document_json(collection, document),
        "text": piece.text,
        "begin": piece.begin,
        "following": piece.following,
    }
    return Ok(body)


@Route(
    "delete",
    DOCUMENT,
    "Delete a document, by a job",
    scopes=("knowledge",),
    description="It is found until the job is done.",
)
def delete_document(request: Request, collection_id: str, doc_id: str) -> Accepted[types.CollectionJob]:
    collection = manage.find(request, collection_id, to_change=True)
    shown = manage.delete_document(request, collection, doc_id)
    return Accepted(shown, {"Location": shown["url"]})


def _page(request: Request, found: Sequence[T]) -> tuple[Sequence[T], answers.ListPage]:
    """The part of a list from the cursor on: its position counts, so a change meanwhile may move it by one."""
    cursor, limit = request.value(CURSOR), request.value(LIMIT)
    position = position_of(cursor) if cursor else "0"
    if not (position.isascii() and position.isdigit() and len(position) < 7):
        raise foreign_cursor()
    begin = int(position)
    rest: answers.ListPage = {}
    if begin + limit < len(found):
        rest["cursor"] = cursor_of(str(begin + limit))
    return found[begin : begin + limit], rest
