"""The tables of docs/finish.md must be up to date. `python tests/python/finish/finish_page.py` writes them anew."""

from __future__ import annotations

from finish_page import PAGE, page, read, written


def test_the_page_has_the_tables_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text
    assert written() in text
    assert read() in text
