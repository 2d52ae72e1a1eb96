"""How an answer ends that was cut off or declined, and the way on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.clients.page_reader import Reader
    from tests.clients.script import Script


def test_an_answer_that_was_cut_off_goes_on(reader: Reader, script: Script) -> None:
    script.says("One, two,", stop_reason="max_tokens")
    cut = reader.ask(script.question("Count."))
    cut.get_by_text("The answer reached its length limit and is cut off.").wait_for()
    script.model.script.add({"match": "turn", "text": "three."})  # what goes on asks nothing that could match
    cut.get_by_role("button", name="Continue the answer to question 1").click()
    reader.shows("three.")
    reader.page.reload()
    rest = reader.exchange("done", index=1)
    rest.get_by_text("The answer above goes on").wait_for()
    assert rest.locator(".answer").inner_text() == "three."
    assert reader.page.get_by_role("button", name="Continue the answer").count() == 0


def test_a_declined_question_says_so_and_is_asked_in_other_words(reader: Reader, script: Script) -> None:
    script.says("Well,", stop_reason="refusal")
    question = script.question("Something.")
    declined = reader.ask(question)
    declined.get_by_text("The model's service declined to answer.").wait_for()
    declined.get_by_role("button", name="Ask in other words").click()
    assert reader.field.input_value() == question
    script.says("Gladly.")
    reader.ask(script.question("Something else."))
    reader.shows("Gladly.")
    assert question not in str(script.requests()[-1]), "the model reads on without it"
