"""Chinese, Japanese and Korean signs and letters, beside which Markdown has other rules (`CjkInline`)."""

from __future__ import annotations

from typing import Final

PUNCTUATION: Final = (
    "\\u3001-\\u3003\\u3008-\\u3011\\u3014-\\u301f\\u3030\\u303d\\u30a0\\u30fb\\ufe30-\\ufe4f"
    "\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65"
)
LETTERS: Final = (
    "\\u1100-\\u11ff\\u2e80-\\u2fdf\\u3005-\\u3007\\u3021-\\u302f\\u3031-\\u303c\\u3040-\\u309f\\u30a1-\\u30fa\\u30fc-\\u318f"
    "\\u31a0-\\u31ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\ua960-\\ua97f\\uac00-\\ud7ff\\uf900-\\ufaff\\uff66-\\uffdc\\U00020000-\\U0003ffff"
)
"""Ranges of characters; page/js/cjk.js has the same."""
