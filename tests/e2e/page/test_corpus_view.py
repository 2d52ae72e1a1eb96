"""The corpus of courses on the page: administrators view and change it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import FilePayload, Locator, Route

    from tests.clients.page_reader import Reader


def course(title: str, lesson: str) -> bytes:
    return f"Course Title: {title}\n\nLesson 0: Start\n{lesson}\n\nLesson 1: End\nAll is said.".encode()


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "", "buffer": content}


def opened(reader: Reader) -> Locator:
    """Open the view as administrators do."""
    if reader.page.get_by_role("button", name="Conversations").is_visible():
        reader.page.get_by_role("button", name="Conversations").click()
    reader.page.get_by_role("button", name="Course materials").click()
    view = reader.page.get_by_role("region", name="Course materials")
    view.locator(".documents").wait_for()
    return view


def take(view: Locator, *files: FilePayload) -> str:
    """Upload files; the outcome of their job."""
    view.get_by_label("Choose files").set_input_files(list(files))
    done = view.locator(".job-head", has_text="Done:")
    done.wait_for()
    return done.inner_text()


def test_only_administrators_are_shown_the_corpus(reader: Reader) -> None:
    assert not reader.page.get_by_role("button", name="Course materials").is_visible()
    reader.page.goto(f"{reader.url}/#courses")
    view = reader.page.get_by_role("region", name="Course materials")
    refusal = view.get_by_role("alert")
    refusal.wait_for()
    assert refusal.inner_text()
    assert view.locator(".documents").count() == 0


def test_files_are_added_refused_by_name_and_deleted(visit: Callable[..., Reader]) -> None:
    reader = visit()
    reader.sign_in(admin=True)
    view = opened(reader)
    title = f"Knots of {reader.name}"
    files = [
        file("knots.txt", course(title, "A bowline holds.")),
        file("latin.txt", "Course Title: Caf\xe9\n\nLesson 0: x\nText.".encode("latin-1")),
        file("old.zip", b"PK\x03\x04"),
        file("empty.md", b""),
    ]
    assert take(view, *files) == "Done: 1 added, 3 refused."
    rows = {text.split("\n")[0].split(".")[0]: text for text in view.locator(".job-file").all_inner_texts()}
    assert "added" in rows["knots"]
    assert "refused: it is not UTF-8" in rows["latin"]
    assert "refused: it is neither text, Markdown, PDF nor DOCX" in rows["old"]
    assert "refused: it is empty" in rows["empty"]
    row = view.get_by_role("row", name=title)
    row.wait_for()
    assert row.locator(".number").first.inner_text() == "2"

    assert take(view, files[0]) == "Done: 1 skipped."
    held: list[Route] = []
    reader.page.route("**/v1/admin/corpora/courses", lambda route: held.append(route))  # noqa: PLW0108 - no builtin
    with reader.page.expect_request("**/v1/admin/corpora/courses"):
        assert take(view, file("knots.txt", course(title, "A bowline slips."))) == "Done: 1 replaced."
    row.get_by_role("button", name=f"Delete {title}").focus()
    view.locator(".documents").evaluate("table => { table.id = 'former' }")
    held[0].continue_()
    reader.page.unroute("**/v1/admin/corpora/courses")
    view.locator(".documents:not(#former)").wait_for()
    assert reader.page.evaluate("document.activeElement.ariaLabel") == f"Delete {title}"
    row.get_by_role("button", name=f"Delete {title}").click()
    reader.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert row.is_visible()
    row.get_by_role("button", name=f"Delete {title}").focus()
    reader.page.keyboard.press("Enter")
    reader.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    row.wait_for(state="detached")
    assert reader.location == "courses"
    reader.page.get_by_role("button", name="New conversation").click()
    reader.sees("What would you like to know?")
    assert not view.is_visible()


def test_a_job_is_found_again_after_a_reload(visit: Callable[..., Reader]) -> None:
    reader = visit()
    reader.sign_in(admin=True)
    view = opened(reader)
    title = f"Ropes of {reader.name}"
    view.get_by_label("Choose files").set_input_files(
        [file("ropes.txt", course(title, "A rope has strands. " * 400))]
    )
    reader.page.wait_for_url(re.compile(r"#courses/jb_\w+"))
    reader.page.reload()
    view.locator(".job-head", has_text="Done: 1 added.").wait_for()
    view.get_by_role("row", name=title).wait_for()


PROGRESS = """async () => {
    const { problemOf, progressOf, rowsOf, stateText, withJob } = await import("/js/corpus_upload.js");
    const { courses } = (await import("/js/corpora.js")).CORPORA;
    const job = { status: "running", files: [], removes: [], reset: false, embedded: 0, to_embed: 0 };
    const files = [{ name: "a.txt", state: "read" }, { name: "b.txt", state: "waiting" }];
    const rows = withJob(rowsOf([{ name: "a.txt", size: 9 }, { name: "b.txt", size: 9 }, { name: "c.exe", size: 9 }], courses), { ...job, files });
    const text = (more) => progressOf({ ...job, ...more }, rows).text;
    return {
        problems: [problemOf({ name: "a.TXT", size: 20_000_000 }, 0, courses), problemOf({ name: "a.txt", size: 20_000_001 }, 0, courses), problemOf({ name: "a.txt", size: 1 }, 200, courses)],
        rows: rows.map(row => `${row.name} ${stateText(row)}`),
        texts: [
            text({ status: "queued" }), text({ files }), text({ files: files.slice(0, 1), embedded: 3, to_embed: 12 }), text({}),
            text({ status: "failed", error: "It broke." }), text({ status: "done", removes: ["x"], reset: true }),
        ],
    };
}"""


def test_a_jobs_progress_is_shown_in_words(reader: Reader) -> None:
    seen = reader.page.evaluate(PROGRESS)
    assert seen["problems"] == ["", "has more than 20 MB", "is beyond the 200 files that one job takes"]
    assert seen["rows"] == [
        "c.exe refused: it is neither text, Markdown, PDF nor DOCX",
        "a.txt read",
        "b.txt waiting",
    ]
    assert seen["texts"] == [
        "Waiting for its turn",
        "Reading: 1 of 2 files",
        "Embedding: 3 of 12 texts",
        "Publishing",
        "The job failed. It broke. What was published before is unchanged.",
        "Done: 1 refused, 1 removed, all else removed.",
    ]
