"""Packages whose names are imported on first use, and the parts of the SDK that a function loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dualtrack.runtime.on_demand import on_demand
from dualtrack_stack.local.offline_model.server import serve_offline_model

CORE = Path(__file__).parents[3] / "layers" / "core" / "python"

GATHERING = """
from . import beside
from .first import Name as Name, other as renamed
from .second import *
from json import dumps
made = Name + "!"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package that re-exports names of its parts; removed after the test."""
    folder = tmp_path / "gathering"
    folder.mkdir()
    for name, text in {
        "__init__": GATHERING,
        "first": "Name = 'name'\nother = 'other'\n",
        "second": "from . import first\nstarred = first.Name * 2\n",
        "beside": "value = 1\n",
        "lower": "name = __name__\n",
    }.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for part in ("", ".first", ".second", ".beside", ".lower"):
        # known to monkeypatch, so that it removes what the test imports
        monkeypatch.setitem(sys.modules, f"gathering{part}", sys)
        del sys.modules[f"gathering{part}"]
    return "gathering"


def _imported() -> set[str]:
    return {name for name in sys.modules if name.startswith("gathering")}


def _import(package: str) -> Any:
    with on_demand(package):
        return __import__(package)


def test_a_name_imports_only_its_own_part(package: str) -> None:
    gathering = _import(package)
    assert _imported() == {"gathering"}
    assert (gathering.Name, gathering.renamed) == ("name", "other")
    assert _imported() == {"gathering", "gathering.first"}
    assert vars(gathering)["Name"] == "name"


def test_a_submodule_is_imported(package: str) -> None:
    gathering = _import(package)
    assert (gathering.beside.value, gathering.lower.name) == (1, "gathering.lower")
    assert _imported() == {"gathering", "gathering.beside", "gathering.lower"}


@pytest.mark.parametrize(
    ("name", "value"), [("made", "name!"), ("starred", "namename"), ("dumps", json.dumps)]
)
def test_any_other_name_runs_the_whole_package(package: str, name: str, value: object) -> None:
    gathering = _import(package)
    assert getattr(gathering, name) == value
    assert _imported() == {"gathering", "gathering.first", "gathering.second", "gathering.beside"}


def test_an_unknown_name_is_an_error(package: str) -> None:
    gathering = _import(package)
    with pytest.raises(AttributeError, match="module 'gathering' has no attribute 'nothing'"):
        _ = gathering.nothing
    assert not hasattr(gathering, "nothing")


def test_other_imports_are_unchanged(package: str) -> None:
    finders = list(sys.meta_path)
    with on_demand(package):
        pass
    assert sys.meta_path == finders
    __import__(package)
    assert _imported() == {"gathering", "gathering.first", "gathering.second", "gathering.beside"}


def _printed(program: str, *arguments: str) -> Any:
    """What a program prints as JSON in a fresh interpreter."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"import sys; sys.path[:0] = [{str(CORE)!r}]\n{program}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_sdk_is_loaded_in_part_and_wholly_before_the_first_call() -> None:
    """No call imports more of it: neither one that is answered nor one that is refused."""
    program = """
import json
from dualtrack.errors import ModelRefused
from dualtrack.models.providers.anthropic.client import connect
loaded = {name for name in sys.modules if name.startswith("anthropic")}
claude = connect(sys.argv[1], "key")
request = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "[ID:q1] Hi"}]}
pieces = []
reply = claude.stream(request, pieces.append)
text, _ = claude.complete(request, 30)
try:
    claude.complete({**request, "max_tokens": -1}, 30)
except ModelRefused:
    pieces.append("refused")
called = {name for name in sys.modules if name.startswith("anthropic")}
print(json.dumps([sorted(loaded), sorted(called - loaded), pieces, reply.stop_reason, text]))
"""
    with serve_offline_model() as model:
        loaded, later, pieces, stop, text = _printed(program, model.url)
    assert text
    assert "".join(pieces) == f"{text}refused"
    assert stop == "end_turn"
    assert later == []
    assert "anthropic.resources.messages.messages" in loaded
    unneeded = (
        "lib.bedrock",
        "lib.vertex",
        "lib.foundry",
        "lib.tools",
        "resources.beta",
        "resources.organization",
    )
    assert not {f"anthropic.{name}" for name in unneeded} & set(loaded)
    assert len(loaded) < 1_300, "of 2,900: does a new package of the SDK re-export names?"


def test_the_rest_of_the_sdk_can_be_imported() -> None:
    program = """
import json
import dualtrack.models.messages_api
from dualtrack.models.messages_api import anthropic
public = anthropic.__all__
missing = [name for name in public if not hasattr(anthropic, name)]
from anthropic import AnthropicBedrock, AsyncAnthropic
from anthropic.types import Message
from anthropic.types.beta import BetaMessage, message_create_params
assert AsyncAnthropic(api_key="key").beta.messages and message_create_params.__name__.startswith("anthropic.")
print(json.dumps([len(public), missing, AnthropicBedrock.__name__, Message.__name__, BetaMessage.__name__]))
"""
    count, *rest = _printed(program)
    assert count > 50
    assert rest == [[], "AnthropicBedrock", "Message", "BetaMessage"]
