"""The offline model on the wire, through the real anthropic SDK: streams, tools, caching, scripts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import httpx2
import pytest
from dualtrack_stack.local.offline_model.server import OfflineModel, serve_offline_model
from dualtrack_stack.local.offline_model.service import Settings
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = "claude-haiku-4-5-20251001"
DOCS: Any = {
    "name": "retrieve_documentation",
    "description": "Search documentation.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
HELLO: Any = [{"role": "user", "content": "[ID:q1] Hello there"}]
HOW: Any = [{"role": "user", "content": "[ID:q1] How do I set up OAuth for Twitter ads?"}]


@pytest.fixture(scope="module")
def server() -> Iterator[OfflineModel]:
    with serve_offline_model() as running:
        yield running


@pytest.fixture
def model(server: OfflineModel) -> OfflineModel:
    server.reset()
    return server


@pytest.fixture(scope="module")
def sdk(server: OfflineModel) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="secret-key", base_url=server.url, max_retries=0) as connected:
        yield connected


@pytest.fixture
def client(model: OfflineModel, sdk: anthropic.Anthropic) -> anthropic.Anthropic:
    del model
    return sdk


def create(client: anthropic.Anthropic, messages: Any = HELLO, **more: Any) -> anthropic.types.Message:
    fields: dict[str, Any] = {"model": MODEL, "max_tokens": 1024, "messages": messages, **more}
    message: anthropic.types.Message = client.messages.create(**fields)
    return message


def said(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def events_of(client: anthropic.Anthropic, messages: Any = HELLO, **more: Any) -> list[Any]:
    with client.messages.stream(model=MODEL, max_tokens=1024, messages=messages, **more) as stream:
        return list(stream)


def test_a_stream_and_a_plain_answer_are_the_same_message(client: anthropic.Anthropic) -> None:
    plain = create(client)
    with client.messages.stream(model=MODEL, max_tokens=1024, messages=HELLO) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) > 3
    assert "".join(pieces) == said(plain) == said(final)
    assert (final.stop_reason, final.usage) == ("end_turn", plain.usage)
    assert "no language model" in said(plain)
    assert stream.request_id


def test_the_order_of_stream_events(client: anthropic.Anthropic) -> None:
    kinds = [event.type for event in events_of(client, HOW, tools=[DOCS])]
    raw = [kind for kind in kinds if kind not in ("text", "input_json")]
    assert raw[0] == "message_start"
    assert raw[-2:] == ["message_delta", "message_stop"]
    starts, stops = raw.count("content_block_start"), raw.count("content_block_stop")
    assert starts == stops == 2
    assert "input_json" in kinds


def test_the_wire_has_pings_and_named_events(model: OfflineModel) -> None:
    body = {"model": MODEL, "max_tokens": 10, "messages": HELLO, "stream": True}
    headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
    with httpx.stream("POST", f"{model.url}/v1/messages", json=body, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = answer.read().decode()
    assert text.startswith('event: message_start\ndata: {"type": "message_start"')
    assert 'event: ping\ndata: {"type": "ping"}\n\n' in text
    assert '"stop_reason": "max_tokens"' in text


def test_a_tool_round(client: anthropic.Anthropic) -> None:
    asked = create(client, HOW, tools=[DOCS])
    use = asked.content[-1]
    assert asked.stop_reason == "tool_use"
    assert use.type == "tool_use"
    assert use.input == {"query": "How do I set up OAuth for Twitter ads?"}
    result = {
        "type": "tool_result",
        "tool_use_id": use.id,
        "content": "### OAuth\n\nSet up OAuth with a key.",
    }
    answered = create(
        client,
        [*HOW, asked.to_param(), {"role": "user", "content": [result]}],
        tools=[DOCS],
    )
    assert answered.stop_reason == "end_turn"
    assert "Set up OAuth with a key." in said(answered)


def test_streamed_tool_input_is_split(client: anthropic.Anthropic) -> None:
    events = events_of(client, HOW, tools=[DOCS])
    pieces = [event.partial_json for event in events if event.type == "input_json"]
    assert len(pieces) > 2
    assert "".join(pieces) == '{"query": "How do I set up OAuth for Twitter ads?"}'


def test_tool_ids_are_never_repeated(client: anthropic.Anthropic) -> None:
    ids = {create(client, HOW, tools=[DOCS]).content[-1].id for _ in range(5)}  # type: ignore[union-attr]
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("choice", "messages", "reason"),
    [
        ({"type": "none"}, HOW, "end_turn"),
        ({"type": "tool", "name": "retrieve_documentation"}, HELLO, "tool_use"),
        ({"type": "auto"}, HELLO, "end_turn"),
    ],
)
def test_tool_choice(client: anthropic.Anthropic, choice: Any, messages: Any, reason: str) -> None:
    message = create(client, messages, tools=[DOCS], tool_choice=choice)
    assert message.stop_reason == reason
    assert any(block.type == "tool_use" for block in message.content) == (reason == "tool_use")


def test_max_tokens_cut(client: anthropic.Anthropic) -> None:
    short = create(client, max_tokens=5)
    assert (short.stop_reason, len(said(short))) == ("max_tokens", 20)
    assert short.usage.output_tokens == 5


class Reading(BaseModel):
    library: str
    topic: str


def test_structured_output(client: anthropic.Anthropic) -> None:
    parsed = client.messages.parse(model=MODEL, max_tokens=200, messages=HOW, output_format=Reading)
    assert parsed.parsed_output == Reading(library="", topic="")


@pytest.mark.parametrize(
    ("name", "thinking", "shown"),
    [
        ("claude-haiku-5-5", None, False),
        ("claude-haiku-5-5", {"type": "adaptive"}, False),
        ("claude-haiku-5-5", {"type": "adaptive", "display": "summarized"}, True),
        ("claude-opus-5-5", None, False),
    ],
)
def test_thinking_is_sent_back_unchanged_or_not_at_all(
    client: anthropic.Anthropic, name: str, thinking: Any, shown: bool
) -> None:
    fixed: Any = {"model": name, "max_tokens": 4096, "tools": [DOCS]}
    fixed |= {"thinking": thinking} if thinking else {}
    with client.messages.stream(messages=HOW, **fixed) as stream:
        asked = stream.get_final_message()
    first, use = asked.content[0], asked.content[-1]
    assert first.type == "thinking"
    assert bool(first.thinking) == shown
    assert use.type == "tool_use"
    result: Any = {"type": "tool_result", "tool_use_id": use.id, "content": "x"}
    results: Any = {"role": "user", "content": [result]}
    back: Any = asked.to_param()
    assert client.messages.create(messages=[*HOW, back, results], **fixed).stop_reason == "end_turn"
    changed: Any = [
        {**block.model_dump(exclude_none=True), "thinking": "else"} if block is first else block
        for block in asked.content
    ]
    forged: Any = {"role": "assistant", "content": changed}
    with pytest.raises(anthropic.BadRequestError, match="signature"):
        client.messages.create(messages=[*HOW, forged, results], **fixed)


@pytest.mark.parametrize(
    "edit",
    [
        {"tools": [{**DOCS, "description": "another"}]},
        {"system": "Another prompt."},
        {"messages": [{"role": "user", "content": "How do I set up something else?"}]},
    ],
)
def test_nothing_before_replayed_thinking_may_change(
    client: anthropic.Anthropic, edit: dict[str, Any]
) -> None:
    """The fifth generation signs thinking together with everything before it; messages may be added after it."""
    fixed: Any = {"model": "claude-haiku-5-5", "max_tokens": 4096, "system": "A prompt.", "tools": [DOCS]}
    asked = client.messages.create(messages=HOW, **fixed)
    result = {"type": "tool_result", "tool_use_id": asked.content[-1].id, "content": "x"}
    back: Any = [asked.to_param(), {"role": "user", "content": [result, {"type": "text", "text": "more"}]}]
    marked: Any = [
        {
            "role": "user",
            "content": [{"type": "text", "text": HOW[0]["content"], "cache_control": {"type": "ephemeral"}}],
        }
    ]
    client.messages.create(messages=[*marked, *back], **fixed)
    changed: Any = {**fixed, "messages": HOW, **edit}
    changed["messages"] = [*changed["messages"], *back]
    with pytest.raises(anthropic.BadRequestError, match="signature"):
        client.messages.create(**changed)


def test_thinking_counts_toward_max_tokens(client: anthropic.Anthropic) -> None:
    short = client.messages.create(model="claude-haiku-5-5", max_tokens=3, messages=HELLO)
    assert (short.content, short.stop_reason) == ([], "max_tokens")
    silent: Any = {"type": "disabled"}
    written = client.messages.create(model="claude-haiku-5-5", max_tokens=3, messages=HELLO, thinking=silent)
    assert [block.type for block in written.content] == ["text"]


@pytest.mark.parametrize("system", ["Summarise this record.", "Answer."])
def test_the_fifth_generation_thinks_in_every_call(client: anthropic.Anthropic, system: str) -> None:
    fixed: Any = {"model": "claude-haiku-5-5", "max_tokens": 200, "system": system, "messages": HELLO}
    kinds = [block.type for block in client.messages.create(**fixed).content]
    assert kinds == ["thinking", "text"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (MODEL, {"output_config": {"effort": "low"}}),
        (MODEL, {"thinking": {"type": "adaptive"}}),
        ("claude-opus-5-5", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5-5", {"thinking": {"type": "disabled"}}),
    ],
)
def test_fields_that_a_model_does_not_accept(
    client: anthropic.Anthropic, name: str, said: dict[str, Any]
) -> None:
    with pytest.raises(anthropic.BadRequestError, match="not supported"):
        client.messages.create(model=name, max_tokens=4096, messages=HELLO, **said)


# The prompt cache


def block(text: str, mark: bool = False) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": "text", "text": text}
    return plain | {"cache_control": {"type": "ephemeral"}} if mark else plain


def cached(client: anthropic.Anthropic, *blocks: dict[str, Any], **more: Any) -> tuple[int, int, int]:
    usage = create(client, [{"role": "user", "content": list(blocks)}], **more).usage
    return usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0, usage.input_tokens


@pytest.fixture
def small() -> Iterator[tuple[anthropic.Anthropic, list[float]]]:
    """A cache without a minimum and a clock that the test moves."""
    time = [0.0]
    settings = Settings(chunk_delay=0, cache_minimum=0)
    with (
        serve_offline_model(settings=settings, now=lambda: time[0]) as running,
        anthropic.Anthropic(api_key="k", base_url=running.url, max_retries=0) as connected,
    ):
        yield connected, time


def test_the_cache_reads_exact_prefixes_only(small: tuple[anthropic.Anthropic, list[float]]) -> None:
    client, _ = small
    assert cached(client, block("a" * 400, mark=True), block("b" * 40)) == (0, 103, 10)
    assert cached(client, block("a" * 400, mark=True), block("c" * 40)) == (103, 0, 10)
    # The breakpoint moves on: tokens written before are read, the rest is written.
    assert cached(client, block("a" * 400), block("c" * 40, mark=True)) == (103, 10, 0)
    assert cached(client, block("x" + "a" * 399), block("c" * 40, mark=True)) == (0, 113, 0)
    # Without a breakpoint nothing is read.
    assert cached(client, block("a" * 400), block("c" * 40)) == (0, 0, 113)


def test_what_is_cached_for_an_hour_outlasts_five_minutes(
    small: tuple[anthropic.Anthropic, list[float]],
) -> None:
    client, time = small
    kept = block("a" * 400) | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    usage = create(client, [{"role": "user", "content": [kept, block("b" * 40, mark=True)]}]).usage
    assert usage.cache_creation is not None
    assert usage.cache_creation.ephemeral_1h_input_tokens == 103
    assert usage.cache_creation.ephemeral_5m_input_tokens == 10
    time[0] += 3_000
    assert cached(client, kept, block("c" * 40)) == (103, 0, 10)
    time[0] += 3_601
    assert cached(client, kept, block("c" * 40)) == (0, 103, 10)


def test_a_request_may_be_cached_to_its_end(small: tuple[anthropic.Anthropic, list[float]]) -> None:
    client, _ = small
    whole: Any = {"cache_control": {"type": "ephemeral"}}
    assert cached(client, block("a" * 400), **whole) == (0, 103, 0)
    assert cached(client, block("a" * 400), block("b" * 40), **whole) == (103, 10, 0)


def test_tool_choice_voids_the_messages_but_not_tools_and_system(
    small: tuple[anthropic.Anthropic, list[float]],
) -> None:
    client, _ = small
    fixed: Any = {"tools": [DOCS], "system": [block("s" * 400, mark=True)]}
    _, written, _ = cached(client, block("a" * 400, mark=True), **fixed)
    assert cached(client, block("a" * 400, mark=True), **fixed) == (written, 0, 0)
    read, again, _ = cached(client, block("a" * 400, mark=True), tool_choice={"type": "none"}, **fixed)
    assert (read, again) == (written - 103, 103)


def test_cache_entries_expire(small: tuple[anthropic.Anthropic, list[float]]) -> None:
    client, time = small
    short = block("a" * 400, mark=True)
    cached(client, short)
    time[0] = 299.0
    assert cached(client, short) == (103, 0, 0)
    time[0] = 299.0 + 301.0
    assert cached(client, short) == (0, 103, 0)


def test_a_short_prefix_is_silently_not_cached(client: anthropic.Anthropic) -> None:
    for _ in range(2):
        assert cached(client, block("a" * 4_000, mark=True)) == (0, 0, 1_003)


# Scripts


def test_a_queue_of_responses_then_the_rules(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"text": "one"}, {"content": [{"type": "tool_use", "name": "x", "input": {"a": 1}}]})
    assert said(create(client)) == "one"
    second = create(client)
    assert second.stop_reason == "tool_use"
    assert second.content[0].id.startswith("toolu_")  # type: ignore[union-attr]
    assert "offline model" in said(create(client))


def test_responses_are_matched_to_their_request(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add(
        {"match": "summary", "text": "a summary", "always": True},
        {"match": "Alpha", "text": "for alpha", "always": True},
        {"match": "turn", "text": "for any turn"},
    )
    summary = create(client, [{"role": "user", "content": "Alpha record"}], system="Summarise this.")
    assert said(summary) == "a summary"
    alpha: Any = [{"role": "user", "content": "[ID:q1] About Alpha"}]
    assert [said(create(client, alpha)) for _ in range(2)] == ["for alpha"] * 2
    assert said(create(client)) == "for any turn"
    assert [response.match for response in model.script.pending] == ["summary", "Alpha"]


def test_always_calling_tools(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"always": True, "content": [{"type": "tool_use", "name": DOCS["name"], "input": {}}]})
    messages = list(HELLO)
    for _ in range(4):
        asked = create(client, messages, tools=[DOCS])
        use = asked.content[0]
        assert use.type == "tool_use"
        result: Any = {"type": "tool_result", "tool_use_id": use.id, "content": "more"}
        messages += [asked.to_param(), {"role": "user", "content": [result]}]
    assert len(model.requests) == 4


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.OverloadedError, "overloaded_error"),
    ],
)
def test_scripted_errors(
    model: OfflineModel,
    client: anthropic.Anthropic,
    status: int,
    error: type[anthropic.APIStatusError],
    kind: str,
) -> None:
    model.script.add({"status": status, "retry_after": 2})
    with pytest.raises(error) as failed:
        create(client)
    assert failed.value.type == kind
    assert failed.value.response.headers["retry-after"] == "2"
    assert create(client).stop_reason == "end_turn"


def test_a_stream_that_is_cut(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"text": "x" * 200, "cut_after": 6})
    with pytest.raises(httpx2.RemoteProtocolError):
        events_of(client)
    model.script.add({"text": "x" * 200, "cut_after": 6, "cut": "end"})
    with client.messages.stream(model=MODEL, max_tokens=1024, messages=HELLO) as stream:
        cut = stream.get_final_message()
    assert cut.stop_reason is None
    assert said(cut) == "x" * 60


def test_a_broken_chunk_and_an_error_event(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"text": "hello", "malformed_after": 3}, {"text": "hello", "error_after": 3})
    with pytest.raises(ValueError, match="Unterminated string"):
        events_of(client)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        events_of(client)


def test_a_paused_turn_may_be_continued(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"text": "so far", "stop_reason": "pause_turn"})
    paused = create(client)
    assert paused.stop_reason == "pause_turn"
    assert create(client, [*HELLO, paused.to_param()]).stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match="prefill"):
        create(client, [*HELLO, {"role": "assistant", "content": "so"}])


def test_refusal_details_and_usage(model: OfflineModel, client: anthropic.Anthropic) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "no"}
    model.script.add(
        {"text": "I cannot.", "stop_reason": "refusal", "stop_details": details, "usage": {"input_tokens": 7}}
    )
    with client.messages.stream(model=MODEL, max_tokens=1024, messages=HELLO) as stream:
        refused = stream.get_final_message()
    assert refused.stop_reason == "refusal"
    assert refused.stop_details is not None
    assert refused.stop_details.category == "cyber"
    assert refused.usage.input_tokens == 7


def test_a_script_cannot_make_a_wrong_request_pass(model: OfflineModel, client: anthropic.Anthropic) -> None:
    model.script.add({"text": "fine"})
    with pytest.raises(anthropic.BadRequestError):
        create(client, [{"role": "assistant", "content": "x"}])
    assert len(model.script.pending) == 1
    assert "first message" in model.requests[-1].refused


def test_a_slow_answer_does_not_delay_others() -> None:
    slow: Any = [{"role": "user", "content": "[ID:q1] slow"}]
    ended: list[type[Exception]] = []

    def ask(client: anthropic.Anthropic) -> None:
        try:
            create(client, slow, timeout=60.0)
        except anthropic.APIError as error:
            ended.append(type(error))

    script = [{"match": "slow", "text": "late", "delay_first": 60}]
    with (
        serve_offline_model(script) as model,
        anthropic.Anthropic(api_key="k", base_url=model.url, max_retries=0) as client,
    ):
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        while model.script.pending:
            create(client)
        assert create(client).stop_reason == "end_turn"
        assert ended == []
    # Closing the server ends the waiting request.
    thread.join(30)
    assert len(ended) == 1


def test_control_over_http_and_no_key_in_the_records(
    model: OfflineModel, client: anthropic.Anthropic
) -> None:
    added = httpx.post(f"{model.url}/control/script", json={"responses": [{"text": "scripted"}]})
    assert added.json() == {"pending": 1}
    assert httpx.post(f"{model.url}/control/script", json={"responses": [{"txt": "x"}]}).status_code == 400
    assert said(create(client, extra_headers={"x-trace": "7"})) == "scripted"
    shown = httpx.get(f"{model.url}/control/requests")
    assert "secret-key" not in shown.text
    (only,) = shown.json()["requests"]
    assert only["headers"]["x-trace"] == "7"
    assert only["headers"]["anthropic-version"] == "2026-10-21"
    assert only["body"]["messages"] == HELLO
    httpx.post(f"{model.url}/control/reset").raise_for_status()
    assert model.requests == ()


def test_no_control_and_no_records_unless_switched_on() -> None:
    with (
        serve_offline_model(settings=Settings(chunk_delay=0)) as plain,
        anthropic.Anthropic(api_key="k", base_url=plain.url, max_retries=0) as client,
    ):
        create(client)
        assert plain.requests == ()
        assert httpx.get(f"{plain.url}/control/requests").status_code == 404
        assert httpx.get(f"{plain.url}/health").json()["status"] == "ok"


def test_the_cache_diagnostics_name_the_first_difference(client: anthropic.Anthropic) -> None:
    asking: Any = {"diagnostics": {"previous_message_id": None}}
    first = create(client, system="Be kind.", tools=[DOCS], **asking)
    assert first.diagnostics is None
    later = [
        *HELLO,
        {"role": "assistant", "content": "Hello."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}],
        },
    ]
    other = [{"role": "user", "content": "[ID:q1] Hello"}, *later[1:]]
    same: dict[str, Any] = {"messages": later, "system": "Be kind.", "tools": [DOCS]}
    for changed, reason in (
        ({}, None),
        ({"messages": other}, "messages_changed"),
        ({"tools": []}, "tools_changed"),
        ({"system": "Be brief.", "tools": []}, "system_changed"),
        ({"model": "claude-opus-4-8", "system": "Be brief."}, "model_changed"),
        ({"tool_choice": {"type": "none"}}, "unavailable"),
    ):
        message = create(client, diagnostics={"previous_message_id": first.id}, **{**same, **changed})
        if reason is None:
            assert message.diagnostics is None
            continue
        assert message.diagnostics is not None
        assert message.diagnostics.cache_miss_reason is not None
        assert message.diagnostics.cache_miss_reason.type == reason
    unasked = create(client)
    lost = create(client, diagnostics={"previous_message_id": unasked.id})
    assert lost.diagnostics is not None
    assert lost.diagnostics.cache_miss_reason is not None
    assert lost.diagnostics.cache_miss_reason.type == "previous_message_not_found"


@pytest.mark.parametrize(
    "wrong", ["msg_1", {"previous_message_id": 5}, {"previous_message_id": ""}, {"id": "m"}]
)
def test_cache_diagnostics_of_another_form_are_refused(client: anthropic.Anthropic, wrong: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="diagnostics"):
        create(client, diagnostics=wrong)
