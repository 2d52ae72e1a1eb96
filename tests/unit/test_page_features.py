"""Every feature that docs/page.md names has tests in a browser, through the front of a running stack.

Not on a page of the tests' own: what a front refuses, or a policy blocks, is seen only there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE_TESTS: Final = ROOT / "tests/e2e/page"
THROUGH_THE_FRONT: Final = frozenset({"reader", "visit", "sheet", "open_sheet", "walk", "root"})
"""Fixtures whose page comes from the stack's front."""

FEATURES: Final = {
    "The list": "conversation_list::test_the_latest_conversation_comes_first",
    "Titles": "conversation_list::test_a_title_that_the_model_makes_after_the_answer_is_shown",
    "Agents": "agents::test_a_new_conversation_begins_with_the_agent_that_was_chosen",
    "Continue": "ends::test_an_answer_that_was_cut_off_goes_on",
    "Declined questions": "ends::test_a_declined_question_says_so_and_is_asked_in_other_words",
    "Branches": "branches::test_a_question_is_asked_differently_and_again_with_its_files",
    "Edits": "branches::test_an_edit_that_cannot_be_sent_keeps_its_text_and_leaves_no_branch",
    "Drafts": "composer::test_each_conversation_has_its_draft_which_a_reload_keeps",
    "Files": "page::test_a_large_file_is_uploaded_before_its_message",
    "Export": "conversation_list::test_an_export_has_every_record_whole",
    "Reload": "page::test_a_reload_in_the_middle_continues",
    "Several tabs": "settings::test_a_session_ends_with_the_last_tab_and_a_refused_one_is_not_shared",
    "Keyboard": "settings::test_shortcuts_work_and_do_not_interfere_with_typing",
    "While it is written": "page::test_text_streams_and_is_complete",
    "Code": "page_weight::test_code_is_copied_by_keyboard",
    "Folded passages": "answers::test_folded_passages_and_footnotes_are_drawn_and_bring_nothing_else",
    "Diagrams": "diagrams::test_a_diagram_of_an_answer_is_a_picture_and_stays_one",
    "Formulas": "answers::test_formulas_are_drawn_and_money_is_not",
    "Tables": "answers::test_tables_keep_their_words_and_scroll_by_themselves",
    "Other scripts": "composer::test_enter_that_accepts_a_word_sends_nothing_in_any_field",
    "Hostile text": "answers::test_a_hostile_text_is_shown",
    "Reads wait": "page::test_files_of_past_queries_and_of_results_open_again_after_a_reload",
    "Thinking": "page::test_thinking_is_folded_live_and_no_part_of_the_answer",
    "Sources": "agents::test_a_source_is_listed_once_and_links_only_to_the_web",
    "Tool results": "graph::test_results_become_tables_of_bounded_size",
    "Receipt": "settings::test_the_receipt_is_drawn_from_the_figures_of_an_answer",
    "Credits": "settings::test_dollars_and_credits_are_drawn_question_by_question",
    "Materials": "corpus_view::test_files_are_added_refused_by_name_and_deleted",
    "Policy": "page::test_the_page_comes_with_a_strict_policy_and_without_its_sources",
}
"""The features by the words in bold that begin their items, each with a test: its file's name and its own."""


def named() -> list[str]:
    """The features of the document; its last part is about serving, and has a policy in it."""
    text = (ROOT / "docs/page.md").read_text(encoding="utf-8")
    features, _, serving = text.partition("## Serving and checking it")
    return re.findall(r"^- \*\*(.+?)\.?\*\*", features, re.MULTILINE) + re.findall(r"\*\*(Policy)\.", serving)


def through_the_front() -> set[str]:
    """``name::test`` of those that ask for a page of the stack's front."""
    return {
        f"{path.stem.removeprefix('test_')}::{node.name}"
        for path in PAGE_TESTS.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        if THROUGH_THE_FRONT & {argument.arg for argument in node.args.args}
    }


def test_every_feature_has_a_test_through_the_front() -> None:
    assert sorted(FEATURES) == sorted(named())
    assert sorted(set(FEATURES.values()) - through_the_front()) == []


def test_no_test_serves_the_page_itself() -> None:
    """Past the front, and what it refuses."""
    served = re.compile(r"web\.FOLDER|page\.web import.*FOLDER|StaticFiles\(")
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    assert [path.name for path, text in texts.items() if served.search(text) and path != Path(__file__)] == []
