"""A tool's result is kept up to two megabytes of text, with a note if it was cut (CONTRACT 6)."""

from __future__ import annotations

import pytest
from dualtrack.chat.tool_results import MAX_RESULT_BYTES, kept


@pytest.mark.parametrize("character", ["x", "é", "語", "💡"])
def test_a_result_is_kept_up_to_two_megabytes(character: str) -> None:
    """Bytes are counted, and no character is split."""
    most = MAX_RESULT_BYTES // len(character.encode())
    assert kept(character * most) == character * most
    text = kept(character * (most + 1))
    assert MAX_RESULT_BYTES - 4 < len(text.encode()) <= MAX_RESULT_BYTES
    beginning, note = text.split("\n\n")
    assert set(beginning) == {character}
    assert note.startswith(f"(The result had {(most + 1) * len(character.encode()):,} bytes.")
