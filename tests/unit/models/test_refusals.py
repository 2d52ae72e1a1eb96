"""The part of a request that the service names in its refusal, in words that the real service was seen to use."""

from __future__ import annotations

import pytest
from dualtrack.models.refusals import BlockPlace, named_file


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (
            "messages.7.content.2.image.source.base64.data: At least one of the image dimensions …",
            BlockPlace(7, 2),
        ),
        ("messages.161.content.1.image.source.base64: image exceeds 5 MB maximum", BlockPlace(161, 1)),
        ("messages.2.content.0.pdf.source.base64.data: The PDF specified was not valid.", BlockPlace(2, 0)),
        ("messages.30.content.0.tool_result.content.4.image.source.base64: image …", BlockPlace(30, 0, 4)),
        ("Could not process image", None),
        ("messages.0.content.0.text.text: Input should be a valid string", None),
        ("messages.1: `tool_use` ids were found without `tool_result` blocks", None),
        ("messages.0.content.-1.image.source", None),
        ("messages.999999999999.content.0.image.source", None),
        ("tools.3.custom.input_schema.properties: Property keys should match pattern", None),
    ],
)
def test_the_file_that_is_named(said: str, place: BlockPlace | None) -> None:
    assert named_file(said) == place
