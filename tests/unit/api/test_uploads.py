"""/v1/uploads: large files come before their message, are named by it once, and are gone after an hour."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dualtrack.chat.delete_conversation import WRITERS_SECONDS
from dualtrack.chat.sweep_deletions import sweep_deletions
from dualtrack.chat.uploaded_files import UPLOAD_SECONDS, sweep_uploads
from dualtrack.message_files import FILES_BYTES, UPLOADED_BYTES
from dualtrack.storage.dynamo import ConditionFailed, transact
from dualtrack.storage.uploads import FOLDER, MOST_OPEN, object_key

from tests.clients.api_client import SETTINGS, Api, items, objects
from tests.drivers.images import png
from tests.drivers.invariants import what_is_left

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT = b"The harbour lies in the north.\n"
NOTES = {"media_type": "text/plain", "bytes": len(TEXT), "name": "notes.txt"}
PNG = png(bytes(range(200)))
PDF = b"%PDF-1.4\n"


def announced(api: Api, **more: Any) -> dict[str, Any]:
    answer = api.call("POST", "/v1/uploads", NOTES | more)
    assert answer.status == 201, answer
    return dict(answer.json)


def key_of(upload: Mapping[str, Any]) -> str:
    return FOLDER + urlsplit(upload["url"]).path.split(f"/{FOLDER}", 1)[1]


def stored(api: Api) -> list[str]:
    """The keys of all objects of the user's uploads."""
    folder = object_key(api.user, "")
    return [key for key in objects(api.world) if key.startswith(folder)]


def put(api: Api, upload: Mapping[str, Any], data: bytes = TEXT) -> str:
    """What the signed address does; returns the id."""
    s3, bucket = api.world.stores.bodies.s3, api.module.settings.bodies_bucket
    s3.put_object(Bucket=bucket, Key=key_of(upload), Body=data)
    return str(upload["upload_id"])


def ask(api: Api, *uploads: str, headers: Mapping[str, str] | None = None, **more: Any) -> Any:
    files = [{"upload_id": upload, **more} for upload in uploads]
    return api.call("POST", "/v1/chats", {"message": "What is in it?", "attachments": files}, headers)


def test_a_file_comes_by_reference(api: Api) -> None:
    upload = announced(api, sha256=hashlib.sha256(TEXT).hexdigest())
    query = parse_qs(urlsplit(upload["url"]).query)
    assert query["X-Amz-Expires"] == [str(UPLOAD_SECONDS)]
    assert {"content-length", "content-type"} <= set(query["X-Amz-SignedHeaders"][0].split(";"))
    assert set(upload["headers"]) == {"Content-Type", "x-amz-checksum-sha256"}
    assert api.user not in upload["url"]
    started = ask(api, put(api, upload))
    assert started.status == 202
    where = f"/v1/conversations/{started.json['conversation_id']}/records"
    (kept,) = api.get(f"{where}/q1")["attachments"]
    assert (kept["media_type"], kept["name"], kept["size"]) == ("text/plain", "notes.txt", len(TEXT))
    assert api.get(f"{where}/q1-f1")["content"] == TEXT.decode()
    assert not stored(api)


def test_nothing_of_a_used_file_outlives_its_conversation(api: Api) -> None:
    announced(api, name="harbour-open.txt")
    chat = ask(api, put(api, announced(api, name="harbour-used.txt"))).json
    api.run(chat["chat_id"])
    assert api.call("DELETE", f"/v1/conversations/{chat['conversation_id']}").status == 204
    assert what_is_left(api.world.stores, api.user, "harbour-used") == []


def test_a_message_may_say_type_and_name_and_have_other_files_in_itself(api: Api) -> None:
    upload = put(api, announced(api))
    files = [
        {"upload_id": upload, "media_type": "text/csv", "name": "a.csv"},
        {"media_type": "text/plain", "data": "aGk="},
    ]
    started = api.call("POST", "/v1/chats", {"message": "And?", "attachments": files}).json
    kept = api.get(f"/v1/conversations/{started['conversation_id']}/records/q1")["attachments"]
    assert [file["media_type"] for file in kept] == ["text/csv", "text/plain"]
    assert kept[0]["name"] == "a.csv"


def test_a_picture_is_what_its_bytes_tell(api: Api) -> None:
    upload = put(api, announced(api, media_type="image/jpg", bytes=len(PNG), name="a.jpg"), PNG)
    started = ask(api, upload).json
    (kept,) = api.get(f"/v1/conversations/{started['conversation_id']}/records/q1")["attachments"]
    assert kept["media_type"] == "image/png"


def test_of_a_long_text_the_beginning_is_kept_with_a_sentence(api: Api) -> None:
    text = TEXT * (6_000_000 // len(TEXT))
    started = ask(api, put(api, announced(api, bytes=len(text)), text))
    assert started.status == 202
    chat = api.chat(started.json["chat_id"])
    stored = api.world.stores.history.record(chat.user, chat.conversation_id, "q1-f1")
    assert stored is not None
    assert len(stored.content.encode()) == FILES_BYTES
    assert stored.content.endswith(f"(The file had {len(text):,} bytes. Only its beginning is kept.)")


def test_short_texts_are_whole_beside_a_long_one(api: Api) -> None:
    text = TEXT * (6_000_000 // len(TEXT))
    long, short = (put(api, announced(api, bytes=len(data)), data) for data in (text, TEXT))
    started = ask(api, long, short).json
    kept = api.get(f"/v1/conversations/{started['conversation_id']}/records/q1")["attachments"]
    assert [file["size"] for file in kept] == [FILES_BYTES - len(TEXT), len(TEXT)]


def test_what_is_refused_and_how(api: Api) -> None:
    """Unknown, of somebody else, not put, other bytes, as many other bytes, used, expired."""
    digest = hashlib.sha256(TEXT).hexdigest()
    said = {
        "unknown": ask(api, f"up_{'0' * 26}"),
        "not put": ask(api, announced(api)["upload_id"]),
        "longer": ask(api, put(api, announced(api), TEXT + b"!")),
        "others": ask(api, put(api, announced(api, sha256=digest), TEXT[::-1])),
    }
    api = api.of_new_user()  # five are open
    late, used = (put(api, announced(api)) for _ in range(2))
    said["foreign"] = ask(api.of("bob"), late)
    said["twice in one"] = ask(api, used, used)
    assert ask(api, used).status == 202
    said["used"] = ask(api, used)
    api.world.clock.now += UPLOAD_SECONDS
    said["expired"] = ask(api, late)
    assert {name: (answer.status, answer.code) for name, answer in said.items()} == {
        "unknown": (404, "not_found"),
        "foreign": (404, "not_found"),
        "not put": (409, "upload_missing"),
        "longer": (400, "invalid_request"),
        "others": (400, "invalid_request"),
        "twice in one": (409, "upload_used"),
        "used": (409, "upload_used"),
        "expired": (410, "expired"),
    }
    for answer in said.values():
        assert answer.json["error"]["message"].startswith("attachments.")


def test_a_refused_chat_leaves_its_upload(api: Api) -> None:
    upload = put(api, announced(api))
    refused = api.call(
        "POST",
        "/v1/chats",
        {"message": "And?", "profile": "no-such-agent", "attachments": [{"upload_id": upload}]},
    )
    assert 400 <= refused.status < 500
    assert ask(api, upload).status == 202


def test_a_repeated_request_is_its_first_chat(api: Api) -> None:
    upload, key = put(api, announced(api)), {"Idempotency-Key": "once"}
    first = ask(api, upload, headers=key)
    assert ask(api, upload, headers=key).json == first.json


def test_a_chat_that_cannot_be_started_has_used_none(api: Api) -> None:
    """The same request is sent again: its key is free, and so are its uploads."""
    upload, key = put(api, announced(api)), {"Idempotency-Key": "later"}
    with pytest.MonkeyPatch.context() as patch:
        machine = type(api.module.executions)(api.module.step_functions, "arn:none")
        patch.setattr(api.module, "executions", machine)
        assert ask(api, upload, headers=key).status == 503
    assert [api.call("POST", "/v1/uploads", NOTES).status for _ in range(MOST_OPEN)] == [201] * 4 + [429]
    assert ask(api, upload, headers=key).status == 202


def test_five_may_be_open_and_one_that_is_used_is_so_no_more(api: Api) -> None:
    uploads = [announced(api) for _ in range(MOST_OPEN)]
    refused = api.call("POST", "/v1/uploads", NOTES)
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert refused.headers["Retry-After"]
    assert api.of("bob").call("POST", "/v1/uploads", NOTES).status == 201
    assert ask(api, put(api, uploads[0]), put(api, uploads[1])).status == 202
    announced(api)
    announced(api)
    assert api.call("POST", "/v1/uploads", NOTES).status == 429


def test_the_sweep_takes_away_what_has_expired(api: Api) -> None:
    stores = api.world.stores
    swept = [announced(api) for _ in range(MOST_OPEN)]
    for upload in swept:
        put(api, upload)
    assert ask(api, swept[0]["upload_id"]).status == 202
    put(api, swept[0])  # late, by somebody who still has the address
    api.world.clock.now += UPLOAD_SECONDS // 2
    kept = announced(api)
    put(api, kept)
    sweep_uploads(stores, 10)
    assert len(stored(api)) == MOST_OPEN + 1, "nothing of it has expired"
    api.world.clock.now += UPLOAD_SECONDS // 2 + 1
    assert sweep_uploads(stores, 10) >= MOST_OPEN
    assert stored(api) == [key_of(kept)]
    for _ in range(MOST_OPEN - 1):
        announced(api)
    assert api.call("POST", "/v1/uploads", NOTES).status == 429


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"bytes": 0}, 400),
        ({"bytes": UPLOADED_BYTES + 1}, 400),
        ({"bytes": UPLOADED_BYTES}, 201),
        ({"media_type": "image/png", "bytes": 5_000_000}, 413),
        ({"media_type": "application/pdf", "bytes": 20_000_000}, 413),
        ({"media_type": "application/zip"}, 400),
        ({"sha256": "x"}, 400),
    ],
)
def test_an_announcement_is_checked(api: Api, more: dict[str, Any], status: int) -> None:
    assert api.call("POST", "/v1/uploads", NOTES | more).status == status


@pytest.mark.parametrize(
    "file",
    [{}, {"upload_id": f"up_{'0' * 26}", "data": "aGk="}, {"data": "aGk="}, {"upload_id": "up_../../x"}],
)
def test_a_file_is_there_in_one_way(api: Api, file: dict[str, Any]) -> None:
    refused = api.call("POST", "/v1/chats", {"message": "And?", "attachments": [file]})
    assert (refused.status, refused.code) == (400, "invalid_request")


def test_a_key_needs_the_scope_and_end_users_are_apart(api: Api) -> None:
    reader = api.by_key(api.make_key("read")["key"])
    assert reader.call("POST", "/v1/uploads", NOTES).status == 403
    secret = api.make_key("chat", acts_for="any")["key"]
    ann, bob = (api.by_key(secret, name) for name in ("ann@shop", "bob@shop"))
    upload = put(api, announced(ann))
    assert ask(bob, upload).status == 404
    assert ask(ann, upload).status == 202


def test_an_erasure_takes_open_uploads(api: Api) -> None:
    """Of a service's end user too."""
    ann = api.by_key(api.make_key("chat", acts_for="any")["key"], "ann")
    for who in (api, ann):
        put(who, announced(who))
    before = {key for key in objects(api.world) if key.startswith(FOLDER)}
    assert api.call("DELETE", "/v1/me").status == 202
    for _ in range(6):
        api.world.clock.now += WRITERS_SECONDS + 1
        sweep_deletions(api.world.stores, api.module.executions, api.module.user_pool, 60)
    after = {key for key in objects(api.world) if key.startswith(FOLDER)}
    assert len(before - after) == 2
    assert not [item for item in items(api.world, SETTINGS.chats_table) if api.user in repr(item)]


def test_of_two_messages_at_once_one_has_the_upload(api: Api) -> None:
    """Both have read it as free; the transaction of the second is refused."""
    announced(api)  # another one that is open
    store, upload = api.world.stores.uploads, put(api, announced(api))
    free = store.find(api.user, upload)
    assert free is not None
    transact(store.client, store.use_actions(api.user, [free], "ch_one"))
    with pytest.raises(ConditionFailed):
        transact(store.client, store.use_actions(api.user, [free], "ch_two"))


def test_a_message_has_as_many_pictures_as_a_model_takes(api: Api) -> None:
    data = PDF + b"\n" * (8_000_000 - len(PDF))
    uploads = [
        put(api, announced(api, media_type="application/pdf", bytes=len(data)), data) for _ in range(2)
    ]
    refused = ask(api, *uploads)
    assert (refused.status, refused.code) == (413, "too_large")
    assert "15 MB" in refused.json["error"]["message"]
    assert ask(api, uploads[0]).status == 202
