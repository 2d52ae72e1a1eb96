"""What the declarations say, what is read of a body, and how failures are told."""

from __future__ import annotations

import subprocess
import sys

from dualtrack.chat_times import ANSWER_FUNCTION_SECONDS, ANSWER_SECONDS
from dualtrack.errors import ApiError
from dualtrack.models.failures import OWNERS
from dualtrack.plugins.openai.refusals import body_of, refused_as, status_of
from dualtrack.plugins.openai.serving import ANSWERS
from dualtrack_stack.doors import BY_NAME

from tests.drivers.tour import fields_of
from tests.plugins.openai.completion_stops import COMPLETIONS


def test_the_declaration_loads_nothing_of_what_answers() -> None:
    program = (
        "import sys; from dualtrack.api.streamed import streamed_apis; streamed_apis()\n"
        "print(sorted(name for name in sys.modules if name.startswith('dualtrack.plugins.openai.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dualtrack.plugins.openai.declared', 'dualtrack.plugins.openai.streamed']"


def test_the_fields_of_a_body_are_those_that_the_code_reads() -> None:
    assert {"n", "stream_options.include_usage", "messages[].content[].image_url.url"} <= fields_of(
        BY_NAME[COMPLETIONS]
    )


def test_a_lease_outlasts_the_answer_and_the_function_the_lease() -> None:
    assert ANSWER_SECONDS < ANSWERS.seconds < ANSWER_FUNCTION_SECONDS


def test_every_kind_of_failure_has_its_form() -> None:
    for code, owner in OWNERS.items():
        refusal = ApiError(refused_as(code), "x")
        assert (status_of(refusal) < 500) == (owner == "caller")
        assert (body_of(refusal)["error"]["type"] == "invalid_request_error") == (owner == "caller")
