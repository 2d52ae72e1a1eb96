"""The two items of a conversation's words: what a query adds is cheap, and nothing is lost between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import boto3
import pytest
from dualtrack.memory.ancestry import Ancestry, SharedPart
from dualtrack.memory.conversation_words import unpacked
from dualtrack.storage.conversation_words import ConversationWords
from dualtrack.storage.dynamo import ConditionFailed, transact

from bench.chat_cost import size
from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack.storage.dynamo import Action

TABLE, USER, CONVERSATION = "history", "u" * 36, "cv_01k8g7grjhk3knn1aaaaaaaaaa"
FIRST = [crc32(b"first %d" % number) for number in range(8_000)]
MANY = [crc32(b"many %d" % number) for number in range(1_000)]


@pytest.fixture
def words() -> Iterator[ConversationWords]:
    with aws_in_process():
        client = boto3.client("dynamodb", region_name="us-east-1")
        make_table(client, TABLE)
        made = ConversationWords(client, TABLE)
        transact(client, end(made, 1, FIRST))
        yield made


def end(
    words: ConversationWords,
    number: int,
    said: Sequence[int],
    conversation_id: str = CONVERSATION,
    **more: Any,
) -> list[Action]:
    return words.actions(USER, conversation_id, more.get("ancestry", Ancestry()), number, said)


def new_words(number: int) -> list[int]:
    """Twenty of a query, and some that are known."""
    return [*FIRST[:50], *(crc32(b"%d %d" % (number, which)) for which in range(20))]


def known(words: ConversationWords, conversation_id: str = CONVERSATION) -> dict[int, int]:
    parts = words.of_all(USER, [conversation_id])[conversation_id]
    return {word: query for part in parts for word, query in unpacked(part).items()}


def test_what_a_query_adds_is_written_alone_until_it_is_a_kilobyte(words: ConversationWords) -> None:
    """Then all words become one item again, once in several queries. Each word keeps the query that said it first."""
    expected = dict.fromkeys(FIRST, 1)
    written: list[list[str]] = []
    for number in range(2, 40):
        actions = end(words, number, new_words(number))
        transact(words.client, actions)
        written.append([action.request["Item"]["sk"]["S"] for action in actions])
        for action in actions:
            if action.request["Item"]["sk"]["S"] == "WORDS#new":
                assert size(action.request["Item"]) <= 1_024
        expected = {**dict.fromkeys(new_words(number), number), **expected}
        assert known(words) == expected
    regrouped = sum("WORDS" in keys for keys in written)
    assert 1 <= regrouped <= len(written) / 5
    assert written.count(["WORDS#new"]) == len(written) - regrouped


def test_a_query_that_says_nothing_new_writes_nothing(words: ConversationWords) -> None:
    transact(words.client, end(words, 2, new_words(2)))
    assert end(words, 3, new_words(2)) == []


def test_a_query_with_many_new_words_is_written_with_all(words: ConversationWords) -> None:
    (action,) = end(words, 2, MANY)
    assert action.request["Item"]["sk"] == {"S": "WORDS"}
    transact(words.client, [action])
    assert known(words) == {**dict.fromkeys(MANY, 2), **dict.fromkeys(FIRST, 1)}


@pytest.mark.parametrize("second_regroups", [False, True])
def test_two_queries_that_end_at_once_do_not_overwrite_each_other(
    words: ConversationWords, *, second_regroups: bool
) -> None:
    transact(words.client, end(words, 2, new_words(2)))
    late = end(words, 3, new_words(3))
    transact(words.client, end(words, 4, MANY if second_regroups else new_words(4)))
    with pytest.raises(ConditionFailed):
        transact(words.client, late)
    transact(words.client, end(words, 3, new_words(3)))
    assert known(words).keys() >= {*new_words(2), *new_words(3)}


def test_a_fork_takes_over_what_both_items_have_of_its_queries(words: ConversationWords) -> None:
    for number in (2, 3):
        transact(words.client, end(words, number, new_words(number)))
    ancestry = Ancestry((SharedPart(CONVERSATION, 2),))
    transact(words.client, end(words, 3, [5], "fork", ancestry=ancestry))
    assert known(words, "fork").keys() == {5, *FIRST, *new_words(2)}
