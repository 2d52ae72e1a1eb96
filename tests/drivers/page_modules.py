"""The page's modules in Node, from the folder that is deployed: a plug-in's import the page's as they are served."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from dualtrack_stack.node import node
from dualtrack_stack.page.folder import whole_page


def in_the_page(module: str, expression: str) -> Any:
    """What an expression is, in which ``it`` is this module, ``js/visible.js``."""
    program = (
        f"import * as it from {json.dumps((whole_page() / module).as_uri())};"
        f"console.log(JSON.stringify({expression}))"
    )
    done = subprocess.run(
        [node(), "--input-type=module"], input=program, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def said(module: str, name: str, given: list[Any]) -> list[Any]:
    """What a function of a module answers to each."""
    return list(in_the_page(module, f"{json.dumps(given)}.map((each) => it.{name}(each))"))
