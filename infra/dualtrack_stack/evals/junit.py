"""A run as JUnit's XML, which CI services show: a suite for each file, a case with its failures."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as Xml

from dualtrack_stack.evals.report import details, dim

if TYPE_CHECKING:
    from dualtrack_stack.evals.compare import Run

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(run: Run) -> bytes:
    """The document."""
    top = Xml.Element("testsuites", name="dualtrack eval")
    for file, group in itertools.groupby(run.results, lambda result: result.file):
        results = list(group)
        failed = sum(not result.passed for result in results)
        seconds = f"{sum(result.outcome.seconds for result in results):.3f}"
        suite = Xml.SubElement(
            top, "testsuite", name=file, tests=str(len(results)), failures=str(failed), time=seconds
        )
        for result in results:
            took = f"{result.outcome.seconds:.3f}"
            case = Xml.SubElement(suite, "testcase", classname=file, name=result.id, time=took)
            case.set("file", result.file)
            case.set("line", str(result.line))
            if not result.passed:
                lines = "\n".join(line.strip() for line in details(result))
                Xml.SubElement(case, "failure", message=_clean(lines.partition("\n")[0])).text = _clean(lines)
            Xml.SubElement(case, "system-out").text = _clean(f"{dim(result)}\n{result.outcome.text}")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(top, encoding="utf-8") + b"\n"


def _clean(text: str) -> str:
    """Without what XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)
