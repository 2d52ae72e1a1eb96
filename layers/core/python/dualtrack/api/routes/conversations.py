"""/v1/conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dualtrack.api import conversations, models
from dualtrack.api.attachments import find_attachment, read_attachment
from dualtrack.api.erasure import REQUEST_SECONDS
from dualtrack.api.parameters import CURSOR, FORKED_FROM, IDEMPOTENCY_KEY, LIMIT, OFFSET, SEARCHED, TRACK
from dualtrack.api.route import Created, NoContent, Ok, Route
from dualtrack.chat.delete_conversation import delete_conversation as delete_whole_conversation
from dualtrack.chat.fork_conversation import first_fork, fork_conversation
from dualtrack.chat.new_chat import Repeat, fingerprint
from dualtrack.errors import invalid_request
from dualtrack.profiles import DEFAULT_PROFILE
from dualtrack.runtime.time_limit import time_for

if TYPE_CHECKING:
    from dualtrack import answers
    from dualtrack.api.request import Request
    from dualtrack.storage.conversations import Conversation

CONVERSATION: Final = "/v1/conversations/{conversation_id}"
ATTACHMENT_PATH: Final = f"{CONVERSATION}/records/{{record_id}}/attachments/{{place}}"


@Route(
    "post",
    "/v1/conversations",
    "Create a conversation",
    models.ConversationBody,
    scopes=("chat",),
    description="Only needed to set a title or an agent first: a chat without a conversation creates one.",
)
def post_conversation(request: Request) -> Created[answers.Conversation]:
    body = request.body(models.ConversationBody)
    profile = body.profile or DEFAULT_PROFILE
    request.identity.require_profile(profile)
    conversation = conversations.create_conversation(
        request.stores, request.user, body.title or "", profile, request.identity.key_id
    )
    return _created(request, conversation)


def _created(request: Request, conversation: Conversation) -> Created[answers.Conversation]:
    location = f"/v1/conversations/{conversation.conversation_id}"
    return Created(_shown(request, conversation), {"Location": location})


def _shown(request: Request, conversation: Conversation) -> answers.Conversation:
    return conversations.conversation_json(conversation, request.stores.clock())


@Route(
    "get",
    "/v1/conversations",
    "List conversations by their last query, the latest first; with `q`, only those that match",
    parameters=(CURSOR, LIMIT, SEARCHED, FORKED_FROM),
    refused=("not_found",),
    scopes=("read",),
    description="Those without a query are listed by the time of their creation.",
)
def get_conversations(request: Request) -> Ok[answers.Conversations]:
    cursor, limit, parent = request.value(CURSOR), request.value(LIMIT), request.value(FORKED_FROM)
    searched = request.value(SEARCHED)
    if parent is None:
        page = conversations.list_conversations(request.stores, request.user, cursor, limit, searched)
    elif searched:
        raise invalid_request("q searches all conversations: leave out forked_from, or q.")
    else:
        page = conversations.list_forks(request.stores, request.user, parent, cursor, limit)
    body: answers.Conversations = {"conversations": page.items, **page.rest}
    return Ok(body)


@Route(
    "get",
    CONVERSATION,
    "Read a conversation's records",
    parameters=(TRACK, CURSOR),
    scopes=("read",),
    description="`full`: every record in full. `summarised`: what is sent to the model of past queries.",
)
def get_conversation(request: Request, conversation_id: str) -> Ok[answers.ConversationRecords]:
    track = request.value(TRACK)
    conversation = conversations.find_conversation(request.stores, request.user, conversation_id)
    page = conversations.list_records(request.stores, conversation, track, request.value(CURSOR))
    body: answers.ConversationRecords = {
        **_shown(request, conversation),
        "track": track,
        "records": page.items,
        **page.rest,
    }
    return Ok(body)


@Route(
    "patch",
    CONVERSATION,
    "Rename a conversation",
    models.TitleBody,
    scopes=("chat",),
    description="The title is then no longer taken from the first query.",
)
def patch_conversation(request: Request, conversation_id: str) -> Ok[answers.Conversation]:
    title = request.body(models.TitleBody).title
    _require_sight(request, conversation_id)
    conversation = conversations.rename_conversation(request.stores, request.user, conversation_id, title)
    return Ok(_shown(request, conversation))


@Route(
    "delete",
    CONVERSATION,
    "Delete a conversation and all its data",
    refused=("conversation_busy",),
    scopes=("erase",),
    description="It is hidden at once; its records, events and files are deleted within 10 minutes. What its "
    "forks share is kept.",
)
def delete_conversation(request: Request, conversation_id: str) -> NoContent:
    has_time = time_for(REQUEST_SECONDS)
    delete_whole_conversation(request.stores, request.user, conversation_id, has_time)
    return NoContent()


@Route(
    "post",
    f"{CONVERSATION}/fork",
    "Fork a conversation: create one that shares the queries before a given one",
    models.ForkBody,
    (IDEMPOTENCY_KEY,),
    ("conversation_busy", "idempotency_conflict"),
    scopes=("chat",),
    description="The shared records have the same ids in both; later queries are separate.",
)
def post_fork(request: Request, conversation_id: str) -> Created[answers.Conversation]:
    """Recognises a repeated request before it validates the body."""
    raw, key = request.raw_body(), request.value(IDEMPOTENCY_KEY)
    content = b"fork %s %s" % (conversation_id.encode(), models.canonical(raw))
    repeat = None if key is None else Repeat(key, fingerprint(content))
    stores, user = request.stores, request.user
    if repeat and (first := first_fork(stores, user, repeat)):
        request.identity.require_sight(first.key_id)
        return _created(request, first)
    before = int(request.body(models.ForkBody).before[1:])
    _require_sight(request, conversation_id)
    key_id = request.identity.key_id
    return _created(request, fork_conversation(stores, user, conversation_id, before, repeat, key_id))


@Route(
    "delete",
    f"{CONVERSATION}/allowed/{{tool}}",
    "Take back what was allowed for a conversation",
    scopes=("decide",),
    description="The next call of the tool waits for approval again. A tool that is not allowed stays so.",
)
def delete_allowed(request: Request, conversation_id: str, tool: str) -> NoContent:
    conversations.disallow_tool(request.stores, request.user, conversation_id, tool)
    return NoContent()


def _require_sight(request: Request, conversation_id: str) -> None:
    """Raise 403 if the request's key may not see the conversation."""
    if request.identity.is_narrowed:
        conversation = conversations.find_conversation(request.stores, request.user, conversation_id)
        request.identity.require_sight(conversation.key_id)


@Route(
    "get",
    f"{CONVERSATION}/records/{{record_id}}",
    "Read a record; if its text is large, in pieces",
    parameters=(OFFSET,),
    scopes=("read",),
    description="If there is a `next_offset`, send it as `?offset=` to read the next piece.",
)
def get_record(request: Request, conversation_id: str, record_id: str) -> Ok[answers.Record]:
    conversation = conversations.find_conversation(request.stores, request.user, conversation_id)
    record = conversations.find_record(request.stores, conversation, record_id, request.value(OFFSET))
    return Ok(record)


@Route(
    "get",
    ATTACHMENT_PATH,
    "Read a file of a record; if it has more than 4 MB, in pieces",
    parameters=(OFFSET,),
    scopes=("read",),
    description="Send `Accept: application/octet-stream`; without it API Gateway would return base64, so the "
    "answer is a 400.",
)
def get_attachment(request: Request, conversation_id: str, record_id: str, place: str) -> Ok[bytes]:
    accept, offset = request.event.headers.get("accept") or "", request.value(OFFSET)
    conversation = conversations.find_conversation(request.stores, request.user, conversation_id)
    file = find_attachment(request.stores.history, conversation, record_id, place)
    return read_attachment(request.stores.history, conversation, record_id, file, accept, offset)
