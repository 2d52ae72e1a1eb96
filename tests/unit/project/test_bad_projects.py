"""Whatever is wrong in a project: one sentence for it, with file, line, and what to write."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dualtrack.credits.plans import PRICE_CLASSES
from dualtrack_stack.project import file as project_file
from dualtrack_stack.project.model import BadProject, OwnFunction, Permission
from dualtrack_stack.project.read import read_project
from dualtrack_stack.project.tools import read_tools
from dualtrack_stack.roots import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack_stack.project.importing import ModuleReport
    from dualtrack_stack.project.model import Project

Write = dict[str, str | bytes]

HEAD = "from dualtrack import tool\n\n\n"
ASK = 'def ask(text: str) -> str:\n    """Asks."""\n    return text\n'
TOOL = f"{HEAD}@tool\n{ASK}"
AGENT = json.loads((LIBRARY / "profiles" / "assistant.json").read_text())


@pytest.fixture
def project(tmp_path: Path) -> Callable[[Write], Project]:
    def read(files: Write, environ: Mapping[str, str] | None = None) -> Project:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_project(tmp_path, environ=environ or {"PATH": os.environ["PATH"]})

    return read


def wrong(read: Callable[[Write], Project], files: Write) -> list[str]:
    with pytest.raises(BadProject) as caught:
        read(files)
    return str(caught.value).splitlines()


ALLOW = "[tools]\nallow = [\n  {{ actions = [{}], resources = [{}] }},\n]\n"
ARN = '"arn:aws:dynamodb:{region}:{account}:table/orders"'

FILES: dict[str, tuple[str | bytes, str]] = {
    "no TOML": ("a = 1\nb = \n", "2: this is no TOML: Invalid value"),
    "no end": ('[settings]\nDUALTRACK_MODEL = """x', "2: this is no TOML: "),
    "twice": ("[settings]\n[settings]\n", "2: this is no TOML: Cannot declare ('settings',) twice"),
    "encoding": (b"# \xff", "1: this is not UTF-8: save the file in that encoding"),
    "size": ("#" * 64_001, "1: it is larger than 64,000 bytes: write less"),
    "depth": (
        "a = " + "[" * 20_000 + "]" * 20_000,
        "1: it is nested too deep: write tables as this file's are",
    ),
    "date": (
        "[settings]\nx = 2026-01-01\n",
        "1: a date or a time is no setting: write a text (Object of type date is not JSON serializable)",
    ),
    "table": ("\n[tool]\n", "2: tool: there is no such name: write tools"),
    "stage": (
        "[stage]\nkeep_data = true\n",
        (
            "2: stage.keep_data: there is no such stage: write one of local, staging, prod (a stage's fields stand in"
            " [stage.staging] and the like)"
        ),
    ),
    "server of two kinds": (
        '[mcp.time]\nurl = "https://x.example"\ncommand = ["x"]\n',
        "1: mcp.time: write either url, the server's address, or command, the words that start it",
    ),
    "server of neither": (
        "[stage.prod.mcp.time]\nread_only = true\n",
        "1: stage.prod.mcp.time: write either url, the server's address, or command, the words that start it",
    ),
    "command that is a text": (
        '[mcp.time]\ncommand = "uvx mcp-server-time"\n',
        '1: mcp.time: command is a list of words, such as ["uvx", "mcp-server-time==2026.10.19"]',
    ),
    "headers of a command": (
        '[mcp.time]\ncommand = ["x"]\nheaders = {}\n',
        "1: mcp.time: headers belongs to a server by address: leave it out beside command",
    ),
    "variable's name": (
        '[mcp.time]\ncommand = ["x"]\nsecrets = ["A-B"]\n',
        "1: mcp.time: 'A-B' is no name of a variable: write letters, digits and _",
    ),
    "server's field": (
        '[stage.staging.mcp.docs]\nurl = "https://x.example"\ntool = []\n',
        (
            "1: stage.staging.mcp.docs: there is no field tool; there are auth, handshake, headers, name, price_class,"
            " read_only, tool_prefix, tools, url"
        ),
    ),
    "server's name": (
        '[mcp.Time]\ncommand = ["x"]\n',
        "1: mcp.Time: name must match [a-z][a-z0-9-]{0,31}",
    ),
    "field": (
        "[stage.prod]\n\nkeep_dat = true\n",
        "3: stage.prod.keep_dat: there is no such name: write keep_data",
    ),
    "field's type": (
        '[stage.prod]\nrequest_rate = "200"\n',
        "2: stage.prod.request_rate: it should be a valid integer",
    ),
    "within a field": (
        "[stage.prod]\nkeep_data = true\n[stage.prod.reserved_concurrency]\nabort = true\n",
        "4: stage.prod.reserved_concurrency.abort: it should be a valid integer",
    ),
    "field's value": (
        "[stage.prod]\nledger_retention_days = 0\n",
        "1: stage.prod: ledger_retention_days of stage prod: must be from 1 to 36500 days, not 0",
    ),
    "name": ('[stage.prod]\nname = "local"\n', "2: stage.prod.name: there is no such name: write one of "),
    "setting": (
        '[settings]\n# DUALTRACK_MODEL\nDUALTRACK_MODDEL = "x"\n',
        "3: settings.DUALTRACK_MODDEL: there is no such name: write DUALTRACK_MODEL",
    ),
    "key": (
        '[stage.prod.settings]\nANTHROPIC_API_KEY = "x"\n',
        (
            "2: stage.prod.settings.ANTHROPIC_API_KEY: a key is no setting: put it into the Parameter Store,"
            " docs/aws/settings.md"
        ),
    ),
    "command's": (
        'settings.DUALTRACK_TOKEN = "x"\n',
        "1: settings.DUALTRACK_TOKEN: it is set in the environment alone: leave it out",
    ),
    "class": ("[prices]\nother = 9\n", "2: prices.other: this class is dualtrack's own: write another name"),
    "class's name": (
        '[prices]\n"A b" = 9\n',
        "2: prices.A b: write small letters, digits and _, the first a letter, at most 32",
    ),
    "price": ("[prices]\nbooking = -1\n", "2: prices.booking: it should be greater than or equal to 0"),
    "price's type": ("[prices]\nbooking = 1.5\n", "2: prices.booking: it should be a valid integer"),
    "tools' field": ("[tools]\nsecret = []\n", "2: tools.secret: there is no such name: write secrets"),
    "memory": ("[tools]\nmemory = 64\n", "2: tools.memory: it should be greater than or equal to 128"),
    "seconds": ("[tools]\nseconds = 900\n", "2: tools.seconds: it should be less than or equal to 55"),
    "secret": (
        '[tools]\nsecrets = ["stripe"]\n',
        "2: tools.secrets.0: write capitals, digits and _, the first a capital, at most 64, such as STRIPE_KEY",
    ),
    "our secret": (
        '[tools]\nsecrets = ["ANTHROPIC_API_KEY"]\n',
        "2: tools.secrets.0: the name is reserved by Lambda or dualtrack: write another one",
    ),
    "Lambda's variable": (
        '[tools.environment]\nAWS_REGION = "x"\n',
        "2: tools.environment.AWS_REGION: the name is reserved by Lambda or dualtrack: write another one",
    ),
    "our variable": (
        '[tools]\nenvironment = { HISTORY_TABLE = "x" }\n',
        "2: tools.environment.HISTORY_TABLE: the name is reserved by Lambda or dualtrack: write another one",
    ),
    "variable's braces": (
        '[tools.environment]\nT = "{user}"\n',
        "2: tools.environment.T: {user} is not known: there are {stage}, {region} and {account}",
    ),
    "variables' size": (
        f'[tools.environment]\nA = "{"x" * 2_000}"\n',
        "1: tools.environment: names and values take 2,001 bytes: write at most 2,000",
    ),
    "secret and variable": (
        '[tools]\nsecrets = ["KEY"]\n[stage.prod.tools.environment]\nKEY = "x"\n',
        "4: stage.prod.tools.environment.KEY: KEY is there twice: write it once",
    ),
    "network": (
        '[tools]\nsubnets = ["subnet-00000000"]\n',
        "2: tools.subnets: write security_groups as well",
    ),
    "subnet": (
        '[tools]\nsubnets = ["vpc-1"]\n',
        "2: tools.subnets.0: it should match pattern '^subnet-[0-9a-f]{8,17}$'",
    ),
    "permission": (
        "[tools]\nallow = [{ action = [] }]\n",
        "2: tools.allow.0.actions: it is missing: write it",
    ),
    "no action": (
        ALLOW.format('"*"', ARN),
        "2: tools.allow.0.actions.0: write a service and an action, such as",
    ),
    "whole service": (
        ALLOW.format('"dynamodb:*"', ARN),
        "2: tools.allow.0.actions.0: write a service and an action, such as dynamodb:GetItem or s3:Get*",
    ),
    "iam": (
        ALLOW.format('"iam:PassRole"', '"*"'),
        "2: tools.allow.0.actions.0: iam could give the function any permission: leave it out",
    ),
    "sts": (
        ALLOW.format('"sts:GetSessionToken"', '"*"'),
        "2: tools.allow.0.actions.0: of sts there is sts:AssumeRole alone: name the roles in resources",
    ),
    "roles": (
        ALLOW.format('"sts:AssumeRole"', '"arn:aws:iam::123456789012:role/*"'),
        "2: tools.allow.0.resources.0: sts:AssumeRole needs the ARN of each role, without *",
    ),
    "resource": (
        ALLOW.format('"ses:SendEmail"', '"orders"'),
        (
            "2: tools.allow.0.resources.0: write an ARN, such as arn:aws:dynamodb:{region}:{account}:table/orders,"
            ' or "*"'
        ),
    ),
    "all tables": (
        ALLOW.format('"dynamodb:GetItem"', '"*"'),
        "2: tools.allow.0.resources.0: this reaches what dualtrack keeps in dynamodb: write the ARN of what is yours",
    ),
    "our tables": (
        ALLOW.format('"dynamodb:GetItem"', '"arn:aws:dynamodb:*:*:table/dualtrack-{stage}-*"'),
        "2: tools.allow.0.resources.0: this reaches what dualtrack keeps in dynamodb",
    ),
    "our keys": (
        ALLOW.format('"ssm:GetParameter"', '"arn:aws:ssm:eu-west-1:1:parameter/*"'),
        "2: tools.allow.0.resources.0: this reaches what dualtrack keeps in ssm",
    ),
    "a stage's": (
        '[[stage.prod.tools.allow]]\nactions = ["s3:GetObject"]\nresources = ["arn:aws:s3:::*"]\n',
        "3: stage.prod.tools.allow.0.resources.0: this reaches what dualtrack keeps in s3",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file_is_refused(name: str, project: Callable[[Write], Project]) -> None:
    text, said = FILES[name]
    problem = wrong(project, {"dualtrack.toml": text})[0]
    assert problem.startswith(f"dualtrack.toml:{said}"), problem


def test_every_problem_has_its_line(project: Callable[[Write], Project]) -> None:
    text = "[prices]\nother = 1\n\n[tools]\nmemory = 1\nmore = 1\n"
    assert [line.split(": ")[:2] for line in wrong(project, {"dualtrack.toml": text})] == [
        ["dualtrack.toml:5", "tools.memory"],
        ["dualtrack.toml:6", "tools.more"],
        ["dualtrack.toml:2", "prices.other"],
    ]


def test_a_wrong_value_of_a_setting_has_its_line_too(project: Callable[[Write], Project]) -> None:
    (problem,) = wrong(project, {"dualtrack.toml": "[settings]\n\nDUALTRACK_COURSE_RANKING = 'x'\n"})
    assert problem.startswith("DUALTRACK_COURSE_RANKING = x (dualtrack.toml:3): must be hybrid or keywords")


def test_what_was_removed_is_named_with_its_replacement(
    project: Callable[[Write], Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_file, "REMOVED", {"stage.tracing": 'write log_level = "DEBUG"'})
    (problem,) = wrong(project, {"dualtrack.toml": "[stage.prod]\ntracing = true\n"})
    assert problem == 'dualtrack.toml:2: stage.prod.tracing: it was removed: write log_level = "DEBUG"'


TOOLS: dict[str, tuple[Write, str]] = {
    "no type": (
        {"tools/a.py": TOOL.replace("text: str", "text")},
        "tools/a.py:4: tool 'ask': the parameter 'text' has no type: write text: str",
    ),
    "no function": (
        {"tools/a.py": f'{HEAD}@tool\nclass Ask:\n    """Asks."""\n'},
        "tools/a.py:4: tool 'Ask': it is no function: write @tool above def or async def",
    ),
    "no schema": (
        {"tools/a.py": TOOL.replace("text: str", "text: bytes")},
        "tools/a.py:4: tool 'ask': the type of the parameter 'text': bytes has no JSON Schema: write str, int,",
    ),
    "no docstring": (
        {"tools/a.py": TOOL.replace('    """Asks."""\n', "")},
        "tools/a.py:4: tool 'ask': it has no docstring: write one that tells the model what the tool does",
    ),
    "default": (
        {"tools/a.py": TOOL.replace("text: str", "text: str = object()")},
        "tools/a.py:4: tool 'ask': the default of 'text' cannot be shown in JSON: write `| None = None`",
    ),
    "price": (
        {
            "tools/a.py": TOOL.replace("@tool", "@tool(price='booking')"),
            "dualtrack.toml": "[prices]\nroom = 1\n",
        },
        f"tools/a.py:4: tool 'ask': price is 'booking': write one of {', '.join(sorted([*PRICE_CLASSES, 'room']))}",
    ),
    "our name": (
        {"tools/a.py": TOOL.replace("ask", "find_node")},
        "tools/a.py:4: tool 'find_node': the name is taken by a tool of dualtrack: write another name",
    ),
    "the project's name": (
        {"tools/a.py": TOOL, "tools/b/c.py": TOOL},
        "tools/b/c.py:4: tool 'ask': the name is taken by tools/a.py:4: write another name",
    ),
    "a server's name": (
        {
            "tools/a.py": TOOL.replace("ask", "docs_ask"),
            "dualtrack.toml": '[[settings.MCP_SERVERS]]\nname = "docs"\nurl = "http://127.0.0.1:1/"\n',
        },
        "tools/a.py:4: tool 'docs_ask': names that begin with docs_ are those of the MCP server: write another name",
    ),
    "longer than its function": (
        {"tools/a.py": TOOL.replace("@tool", "@tool(seconds=56)")},
        "tools/a.py:4: tool 'ask': it may take 56 s, but its function 55 s: write less, or more as seconds in [tools]",
    ),
    "too many": (
        {
            "tools/a.py": HEAD
            + "".join(f'@tool\ndef t{n}() -> str:\n    """T."""\n    return ""\n\n' for n in range(501))
        },
        "tools/a.py:2504: there are 501 tools: a request takes at most 500",
    ),
    "no Python": ({"tools/a.py": "x = 1\ndef f(:\n"}, "tools/a.py:2: this is no Python: invalid syntax"),
    "null bytes": (
        {"tools/a.py": "\0"},
        "tools/a.py:1: this is no Python: source code string cannot contain null",
    ),
    "encoding": (
        {"tools/a.py": b"x = '\xff'\n"},
        "tools/a.py:1: this is no Python: (unicode error) 'utf-8' codec",
    ),
    "no module": (
        {"tools/a.py": "import json\nimport nowhere.there\n"},
        "tools/a.py:2: there is no module nowhere: run uv add with the name of its package, or write tools.nowhere",
    ),
    "no module of the project's": (
        {"tools/a.py": "from tools.b import c\n"},
        "tools/a.py:1: there is no module tools.b: write the name of a file in tools/",
    ),
    "a module at the root": (
        {"tools/a.py": "import helpers\n", "helpers.py": ""},
        "tools/a.py:1: there is no module helpers: run uv add",
    ),
    "no name in a module": (
        {"tools/a.py": "from tools.b import c\n", "tools/b.py": ""},
        "tools/a.py:1: it cannot be imported: ImportError: cannot import name 'c' from 'tools.b'",
    ),
    "in a helper": (
        {"tools/a.py": "import tools.helper\n", "tools/helper.py": "\n1 / 0\n"},
        "tools/helper.py:2: it cannot be imported: ZeroDivisionError: division by zero",
    ),
    "no end": (
        {"tools/a.py": "def f():\n    f()\nf()\n"},
        "tools/a.py:2: it cannot be imported: RecursionError: ",
    ),
    "exit": (
        {"tools/a.py": "import sys\nsys.exit(0)\n"},
        "tools/a.py:2: it ends the process when it is imported: leave that to a function",
    ),
    "hard exit": (
        {"tools/a.py": "import os\nos._exit(3)\n"},
        "tools/a.py:1: the process ended with exit code 3 when it was imported: leave that to a function",
    ),
    "interrupt": (
        {"tools/a.py": "raise KeyboardInterrupt\n"},
        "tools/a.py:1: it cannot be imported: KeyboardInterrupt",
    ),
    "wild text": (
        {"tools/a.py": "raise ValueError('x' * 10**7 + '\\n')\n"},
        f"tools/a.py:1: it cannot be imported: ValueError: {'x' * 200}",
    ),
    "text that fails": (
        {"tools/a.py": "class E(Exception):\n    def __str__(self):\n        1 / 0\nraise E\n"},
        "tools/a.py:4: it cannot be imported: E",
    ),
    "file's name": (
        {"tools/my-tool.py": TOOL},
        "tools/my-tool.py:1: 'my-tool' is no name of a module: call it 'my_tool'",
    ),
    "keyword": (
        {"tools/class.py": TOOL},
        "tools/class.py:1: 'class' is no name of a module: call it 'class_'",
    ),
    "folder's name": (
        {"tools/1st/a.py": TOOL},
        "tools/1st/a.py:1: '1st' is no name of a module: call it '_1st'",
    ),
    "large": (
        {"tools/a.py": "#" * 5_000_000},
        "tools/a.py:1: it has 5,000,000 bytes: write modules of at most 1,000,000, and data into other files",
    ),
    "secret in no output": (
        {
            "tools/a.py": "import os\nraise ValueError(os.environ['KEY'])\n",
            "dualtrack.toml": "tools.secrets = ['KEY']\n",
        },
        "tools/a.py:2: it cannot be imported: ValueError: not-set",
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_wrong_tool_is_refused(name: str, project: Callable[..., Project]) -> None:
    files, said = TOOLS[name]
    with pytest.raises(BadProject) as caught:
        project(files, {"PATH": os.environ["PATH"], "KEY": "the secret's value"})
    assert str(caught.value).startswith(said), caught.value
    assert "\n" not in str(caught.value), "one problem"


@pytest.mark.parametrize(
    ("code", "line"), [("while True:\n    pass\n", 1), ("import time\n\ntime.sleep(1000)\n", 3)]
)
def test_a_module_that_hangs_is_named_with_its_line(code: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "a.py").write_text(code)
    with pytest.raises(BadProject) as caught:
        read_tools(tmp_path, PRICE_CLASSES, OwnFunction(), os.environ, seconds=1.0)
    said = str(caught.value)
    assert said in {
        f"tools/a.py:{near}: importing tools/a.py takes more than 1 s: leave what takes long to the tool"
        for near in (line, line + 1)
    }


def test_links_may_not_lead_out(tmp_path: Path, project: Callable[[Write], Project]) -> None:
    outside = tmp_path / "elsewhere.py"
    outside.write_text(TOOL)
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "a.py").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    (folder / "gone.py").symlink_to(folder / "nothing.py")
    (folder / "loop.py").symlink_to(folder / "loop.py")
    assert wrong(project, {}) == [
        "tools/a.py:1: it is a link out of tools/: put the file itself there",
        "tools/gone.py:1: it is a link to nothing: remove it",
        "tools/loop.py:1: it is a link to nothing: remove it",
        "tools/up:1: it is a link out of tools/: put the file itself there",
    ]


def test_what_is_no_file_is_refused(tmp_path: Path, project: Callable[[Write], Project]) -> None:
    (tmp_path / "tools").mkdir()
    os.mkfifo(tmp_path / "tools" / "a.py")
    os.mkfifo(tmp_path / "tools" / "data.csv")
    assert wrong(project, {}) == [
        "tools/a.py:1: it is no file: remove it",
        "tools/data.csv:1: it is no file: remove it",
    ]


@pytest.mark.parametrize("name", ["dualtrack.toml", "profiles/a.json"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "endless", "folder"])
def test_nothing_is_waited_for_under_a_files_name(
    name: str, kind: str, tmp_path: Path, project: Callable[[Write], Project]
) -> None:
    """What would be read for ever is refused at once: a pipe that nobody writes, a device."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            listener.bind(str(path))
        elif kind == "endless":
            path.symlink_to("/dev/zero")
        else:
            path.mkdir()
        (problem,) = wrong(project, {})
    assert problem.startswith(f"{name}:1: it cannot be read: ")


PROFILES: dict[str, tuple[str, str]] = {
    "no JSON": ('{\n"name": "x",\n', "3: Invalid JSON: EOF while parsing"),
    "no object": ("[]", "1: it should be an object"),
    "type": (json.dumps({**AGENT, "name": "a", "tools": 1}, indent=1), "tools: it should be a valid array"),
    "tool": (
        json.dumps({**AGENT, "name": "a", "tools": ["asks"]}, indent=1),
        "tools.0: there is no tool 'asks'; there are",
    ),
    "field": (
        json.dumps({**AGENT, "name": "a", "tolls": []}, indent=1),
        "tolls: there is no such field: write one of name,",
    ),
    "name": (json.dumps({**AGENT, "name": "b"}, indent=1), "name: must be a, like the file's name"),
    "empty": ("", "1: Invalid JSON: EOF while parsing"),
}


@pytest.mark.parametrize("name", PROFILES)
def test_a_wrong_profile_is_refused(name: str, project: Callable[[Write], Project]) -> None:
    content, said = PROFILES[name]
    problem = wrong(project, {"profiles/a.json": content})[0]
    field = said.split(":")[0].split(".")[0]
    line = next((n for n, text in enumerate(content.splitlines(), 1) if text.startswith(f' "{field}"')), 0)
    expected = f"{line}: {said}" if line else said
    assert problem.startswith(f"profiles/a.json:{expected}"), problem


def test_a_right_project(project: Callable[[Write], Project]) -> None:
    """With what may look wrong: a module named like one of Python's, a relative import, a print, a data file."""
    read = project(
        {
            "dualtrack.toml": (
                '[tools]\nsecrets = ["KEY"]\nenvironment = { A = "1", B = "{stage}" }\n'
                'allow = [{ actions = ["s3:Get*"], resources = ["arn:aws:s3:::orders-{stage}/*"] }]\n'
                '[stage.prod.tools]\nmemory = 1024\nenvironment = { A = "2" }\n[prices]\nbooking = 7\n'
            ),
            "tools/json.py": (
                f"import json\nprint('hello', json.dumps([1]))\n{HEAD}@tool(price='booking', approval='never')\n{ASK}"
            ),
            "tools/more/__init__.py": "",
            "tools/more/other.py": "from ..json import ask\nfrom . import data\n",
            "tools/more/data.py": "import os\nassert os.environ['KEY'] and os.environ['A']\n",
            "tools/more/table.csv": "1,2",
            "profiles/a.json": json.dumps({**AGENT, "name": "a", "tools": ["ask"]}),
        }
    )
    assert [(spec["module"], spec["name"], spec["kind"], spec["price_class"]) for spec in read.specs] == [
        ("tools.json", "ask", "own", "booking")
    ]
    assert dict(read.prices) == {"booking": 7}
    assert [path.name for path in read.profiles] == ["a.json"]
    assert read.own("staging").allow == (Permission(("s3:Get*",), ("arn:aws:s3:::orders-{stage}/*",)),)
    assert read.own("staging").environment == {"A": "1", "B": "{stage}"}
    assert (read.own("prod").memory, dict(read.own("prod").environment)) == (1024, {"A": "2", "B": "{stage}"})
    assert read.notes == (
        "tools/json.py:1: it prints when it is imported, into the function's log: hello [1]",
    )


def test_an_empty_folder_is_a_project(tmp_path: Path) -> None:
    read = read_project(tmp_path, environ={})
    assert (read.specs, read.profiles, read.notes, read.own("prod")) == ((), (), (), OwnFunction())


def test_that_repeatable_alone_spares_no_approval_is_a_note(project: Callable[[Write], Project]) -> None:
    meant = [
        "repeatable=True",
        "repeatable=True, effect='changes'",
        "effect='reads'",
        "repeatable=True, approval='never'",
        "repeatable=True, approval='writes'",
    ]
    tools = (
        f'@tool({options})\ndef t{n}() -> str:\n    """Does."""\n    return ""\n'
        for n, options in enumerate(meant)
    )
    read = project({"tools/a.py": "from dualtrack import tool\n" + "".join(tools)})
    told = [note.partition(": repeatable=True alone no longer spares an approval")[0] for note in read.notes]
    assert told == ["tools/a.py:2: tool 't0'", "tools/a.py:18: tool 't4'"]
    assert [(spec["effect"], spec["repeatable"]) for spec in read.specs] == [
        ("changes", True),
        ("changes", True),
        ("reads", True),
        ("changes", True),
        ("changes", True),
    ]


def test_tools_without_a_tool_are_a_note(project: Callable[[Write], Project]) -> None:
    read = project({"tools/a.py": "x = 1\n"})
    assert read.notes == (
        "tools:1: no function there is a tool: write @tool above one (from dualtrack import tool)",
    )


def test_a_heavy_import_is_named_with_its_package(tmp_path: Path) -> None:
    from dualtrack_stack.project.tools import noted

    module: ModuleReport = {
        "path": "tools/a.py",
        "tools": [{"note": ""}],
        "printed": "",
        "seconds": 2.34,
        "problem": "",
        "packages": {"json": 0.1, "pandas": 1.9},
    }
    assert [*noted([module])] == [
        (
            "tools/a.py:1: importing it takes 2.3 s here, 1.9 s of them pandas, at every cold start of the tools'"
            " function: import within the tool what not every call needs"
        )
    ]


def test_a_module_is_read_anew(project: Callable[[Write], Project]) -> None:
    assert [spec["name"] for spec in project({"tools/a.py": TOOL}).specs] == ["ask"]
    assert [spec["name"] for spec in project({"tools/a.py": TOOL.replace("ask", "say")}).specs] == ["say"]
    assert not list(Path(project({"tools/a.py": TOOL}).root).rglob("__pycache__"))
