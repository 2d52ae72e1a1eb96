"""``dualtrack new``: a project of one's own, from the files in ``skeleton/``. Needs no extra and no network."""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import click
from dualtrack import __version__

from dualtrack_stack.cli.command import exit_codes
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

SKELETON: Final = Path(__file__).parent / "skeleton"
_HIDDEN: Final = ("gitignore", "github")
"""Files and folders whose names get a dot."""

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_NAME_LIMIT: Final = 60
_TAKEN: Final = ("dualtrack", "pytest")
"""What a project depends on: none depends on itself."""

_NEXT: Final = """\
{folder} has an agent with a tool of its own. Next:

  {enter}uv run dualtrack chat 'weather city=Ottawa'   the local stack; the offline model calls the tool
  uv run dualtrack dev                          the same with its page
  uv run pytest                                 whole chats with a scripted model
  uv run dualtrack eval                         the cases in evals/

With ANTHROPIC_API_KEY set, Claude answers. README.md has the rest."""


@click.command()
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
def new(folder: Path) -> None:
    """Make a project of your own: a folder with an agent, a tool, a test and the way to AWS."""
    with exit_codes():
        _check(folder)
        try:
            for path, text in project_files(folder.resolve().name, _source()).items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise Missing(f"{folder} cannot be written: {problem.strerror}.") from problem
        enter = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))}\n  "
        click.echo(_NEXT.format(folder=folder, enter=enter))


def _check(folder: Path) -> None:
    name = folder.resolve().name
    if not _NAME.fullmatch(name) or len(name) > _NAME_LIMIT:
        raise Missing(
            f"{name!r} is no name of a project: write at most {_NAME_LIMIT} small letters, digits and single hyphens,"
            " a letter first, such as my-agents."
        )
    if name in _TAKEN:
        raise Missing(f"A project cannot be named {name}, which it depends on: choose another name.")
    if folder.is_file():
        raise Missing(f"{folder} is a file: choose another name.")
    if folder.is_dir() and any(folder.iterdir()):
        raise Missing(f"{folder} is not empty: choose another name, or empty it first.")


def project_files(name: str, source: str) -> Mapping[str, str]:
    """The texts of a new project by their paths in it. ``source``: the table of where the package comes from."""
    paths = (path for path in SKELETON.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    files = {_place(path): path.read_text(encoding="utf-8").replace("my-agents", name) for path in paths}
    files["pyproject.toml"] = files["pyproject.toml"].replace(">=1.0,<2", _versions()) + source
    return dict(sorted(files.items()))


def _place(path: Path) -> str:
    first, *rest = path.relative_to(SKELETON).parts
    return "/".join((f".{first}" if first in _HIDDEN else first, *rest))


def _versions() -> str:
    """From this release to the next that may take something away."""
    return f">={__version__},<{int(__version__.split('.')[0]) + 1}"


def _source() -> str:
    """The table that names where this package came from, if that is no index (PEP 610)."""
    try:
        told = distribution("dualtrack").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    origin: dict[str, Any] = json.loads(told or "{}")
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        fields = {"git": url, "rev": origin["vcs_info"]["commit_id"]}
    elif url.startswith("file:"):
        fields = {"path": unquote(urlsplit(url).path)}
    elif url:
        fields = {"url": url}
    else:
        return ""
    pairs = ", ".join(f"{key} = {json.dumps(value)}" for key, value in fields.items())
    editable = ", editable = true" if origin.get("dir_info", {}).get("editable") else ""
    return f"\n[tool.uv.sources]\ndualtrack = {{ {pairs}{editable} }}\n"
