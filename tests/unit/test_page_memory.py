"""What the Memory view says of an agent's memory: by the policy of its profile, as the API lists it."""

from __future__ import annotations

import json

import pytest
from dualtrack.api.tool_list import tools_json
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.catalogue import Catalogue

from tests.drivers.page_modules import in_the_page


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("assistant", "a summary or an extract"),
        ("graph", "a summary or an extract"),
        ("courses", "questions and answers in full"),
        ("sessions", "questions and answers in full"),
        ("removed since", "a summary or an extract"),
    ],
)
def test_the_policy_of_the_profile_is_explained(profile: str, said: str) -> None:
    offered = json.dumps(tools_json(all_profiles().values(), Catalogue(), "model"), default=dict)
    assert said in in_the_page("js/memory_view.js", f"it.explained({offered}, {json.dumps(profile)})")
