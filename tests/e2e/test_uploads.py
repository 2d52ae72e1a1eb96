"""Large files by the terminal, on the deployed stack: what has no room in a request is uploaded before it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.stack_client import PATIENCE

if TYPE_CHECKING:
    from tests.clients.script import Script
    from tests.clients.stack_client import Person, Root

BIG = b"The harbour lies in the north.\n" + b"It rains.\n" * 600_000
SMALL = b"key,value\nconsumer,abc\n"


def test_the_command_uploads_what_has_no_room_in_a_request(
    root: Root, ann: Person, script: Script, tmp_path: Path
) -> None:
    files = {"weather.txt": BIG, "keys.csv": SMALL}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    script.says("In the north.")
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("dualtrack")), "chat", script.question(), "--json"),
            *("--url", root.stack.url, "--token", ann.identity.token),
            *(part for name in files for part in ("--file", str(tmp_path / name))),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert "The files have 6.0 MB of text: 4 MB are kept, of the longest the beginning." in said
    assert "weather.txt: uploading 6.0 MB" in said
    assert not any("keys.csv: uploading" in line for line in said)
    sent = repr(script.requests()[-1]["messages"])
    assert "The harbour lies in the north." in sent
    assert "consumer,abc" in sent
    chat = json.loads(done.stdout)
    kept = ann.record(chat["conversation_id"], "q1")["attachments"]
    assert [file["name"] for file in kept] == [*files]
