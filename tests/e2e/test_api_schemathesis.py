"""The OpenAPI document against the deployed stack: valid, and followed by every answer (schemathesis)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from dualtrack.api.table import ROUTES
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from tests.clients.stack_client import PATIENCE
from tests.long_forms import LONG

if TYPE_CHECKING:
    from tests.clients.stack_client import Root

SECONDS = 540
SEED = "20261121"
PHASES = "examples,coverage,fuzzing" if LONG else "coverage"

SETTINGS = """
[checks]
# the contract has no 405: an unserved method is a 404
unsupported_method.enabled = false
positive_data_acceptance.expected-statuses = ["2xx", "401", "402", "403", "404", "409", "413", "429"]

# no schema can state that a cursor is one of this list, that a file is what it says, or that a user has 20 keys
[[operations]]
include-path = ["/v1/conversations", "/v1/conversations/{conversation_id}", "/v1/credits/ledger"]
include-method = "GET"
checks.positive_data_acceptance.enabled = false

[[operations]]
include-path = ["/v1/chats", "/v1/keys"]
include-method = "POST"
checks.positive_data_acceptance.enabled = false
"""


def test_the_document_is_valid_openapi_3_1_and_open_to_everybody(root: Root) -> None:
    response = httpx.get(f"{root.stack.url}/openapi.json", timeout=PATIENCE)
    assert response.status_code == 200
    document = response.json()
    assert document["openapi"].startswith("3.1.")
    validate(document, cls=OpenAPIV31SpecValidator)
    assert httpx.get(f"{root.stack.url}/health", timeout=PATIENCE).json() == {"status": "ok"}


def test_no_generated_request_causes_a_server_error_or_an_undocumented_answer(
    root: Root, tmp_path: Path
) -> None:
    """All operations, valid and invalid requests, all checks except those disabled above."""
    settings = tmp_path / "schemathesis.toml"
    settings.write_text(SETTINGS, encoding="utf-8")
    identity = root.stack.token("user-schemathesis", admin=True)
    url = root.stack.url
    run = subprocess.run(
        [
            str(Path(sys.executable).parent / "schemathesis"),
            *("--config-file", str(settings)),
            *("run", f"{url}/openapi.json", "--url", url, "-H", f"Authorization: Bearer {identity.token}"),
            *("--phases", PHASES, "--seed", SEED, "--max-examples", "3"),
            *("--no-shrink", "--continue-on-failure", "--request-timeout", "60", "--warnings", "off"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:]
    assert f"{len(ROUTES)} operations" in run.stdout or f"Tested: {len(ROUTES)}" in run.stdout, run.stdout[
        -2_000:
    ]
