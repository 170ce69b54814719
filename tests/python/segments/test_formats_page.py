from __future__ import annotations

from formats_page import PAGE, table


def test_the_page_has_the_table_of_the_data() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(table())
