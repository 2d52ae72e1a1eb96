"""Which questions the embedding model knows, by their script."""

from __future__ import annotations

import pytest
from dualtrack.knowledge.minilm import NAME
from dualtrack.knowledge.scripts import knows


@pytest.mark.parametrize(
    "question",
    ["How do I log in?", "Wie ändere ich die Größe?", "Tiếng Việt", "429?", "", "FastAPI で OAuth2 を使う"],
)
def test_the_local_model_knows_latin_letters(question: str) -> None:
    assert knows(NAME, question)


@pytest.mark.parametrize(
    "question",
    ["如何备份数据库", "API の認証方法を知りたい", "데이터베이스", "Ὀδυσσεύς", "хранение", "ไทย", "हिन्दी"],
)
def test_it_knows_no_other_script_and_a_multilingual_one_knows_all(question: str) -> None:
    assert not knows(NAME, question)
    assert knows("voyage-3-large", question)
