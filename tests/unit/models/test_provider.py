"""A provider of the model is its folder: what it says of itself, and who names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from dualtrack.models.provider import FIRST, FOLDER, PROVIDERS, Signing, provider_of, providers
from dualtrack.settings import DEFAULTS, Settings, declared, variables_of

ROOT: Final = Path(__file__).parents[3]
OWN_ENTRIES: Final = "settings.py"
"""Where the settings of all services are declared, those of providers among them."""

MIXED: Final = Signing("some", ("Ask",), "model/*", "", "https://some.{region}.example.com/v1", "SOME_SECRET")


def test_there_are_providers() -> None:
    assert {"anthropic", "bedrock"} <= set(PROVIDERS)
    assert provider_of("").name == DEFAULTS.dualtrack_provider
    assert FIRST == "anthropic"


@pytest.mark.parametrize("name", PROVIDERS)
def test_it_is_found_by_its_folder_and_names_settings_that_there_are(name: str) -> None:
    provider = provider_of(name)
    assert provider.name == name
    assert (FOLDER / name / "client.py").is_file()
    asked = set(variables_of(["turn"]))
    assert provider.address in asked
    assert not provider.key or declared()[provider.key].field.upper() in asked
    if provider.signing:
        assert hasattr(DEFAULTS, provider.signing.credentials.lower())


@pytest.mark.parametrize("name", PROVIDERS)
def test_what_is_said_of_it_does_not_lack_a_word(name: str) -> None:
    """Of a key what a person is asked; without one what an operator looks at, and how the model is opened."""
    provider = provider_of(name)
    assert provider.title
    assert provider.question if provider.key else provider.look_at and provider.opened


def test_the_key_of_one_is_its_parameter() -> None:
    settings = Settings(anthropic_secret="/dualtrack-prod/anthropic")
    assert provider_of("anthropic").key_id(settings) == "/dualtrack-prod/anthropic"
    assert {provider.key_id(settings) for provider in providers() if not provider.key} <= {""}


def test_a_region_is_what_stands_in_its_place_in_the_address() -> None:
    assert MIXED.endpoint("eu-west-1") == "https://some.eu-west-1.example.com/v1"
    assert MIXED.region_of("https://some.eu-west-1.example.com/other") == "eu-west-1"
    for other in ("", "https://some.example.com/v1", "https://someXeu-west-1.example.com"):
        assert MIXED.region_of(other) == ""


@pytest.mark.parametrize("name", sorted({*PROVIDERS} - {FIRST}))
def test_no_source_outside_of_its_folder_names_it(name: str) -> None:
    """The first one has the name of the SDK that all may use."""
    word = re.compile(rf"\b{name}|{name}\b", re.IGNORECASE)
    named = [
        path.relative_to(ROOT).as_posix()
        for root in (FOLDER.parents[1], ROOT / "infra", ROOT / "functions")
        for path in sorted(root.rglob("*.py"))
        if not path.is_relative_to(FOLDER / name) and word.search(path.read_text(encoding="utf-8"))
    ]
    assert [path for path in named if not path.endswith(f"dualtrack/{OWN_ENTRIES}")] == []
