"""What the Memory view says of an agent's memory: by the policy of its profile, as the API lists it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from dualtrack.api.tool_list import tools_json
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.catalogue import Catalogue
from dualtrack_stack.node import node

PAGE = Path(__file__).parents[2] / "infra" / "dualtrack_stack" / "page" / "js"


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("assistant", "long ones as summaries"),
        ("graph", "long ones as summaries"),
        ("courses", "questions and answers in full"),
        ("sessions", "questions and answers in full"),
        ("removed since", "long ones as summaries"),
    ],
)
def test_the_policy_of_the_profile_is_explained(profile: str, said: str) -> None:
    offered = json.dumps(tools_json(all_profiles().values(), Catalogue(), "model"), default=dict)
    program = (
        f"import {{ explained }} from {json.dumps((PAGE / 'memory_view.js').as_uri())};"
        f"console.log(explained({offered}, {json.dumps(profile)}))"
    )
    command = [node(), "--input-type=module", "--eval", program]
    assert said in subprocess.run(command, capture_output=True, text=True, check=True).stdout
