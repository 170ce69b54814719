"""Examples in docstrings, as blocks of code: the site's markup would read their brackets as links."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?m)^>>> (?:.+\n?)+")


class Examples(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda block: f"```pycon\n{block[0].rstrip()}\n```\n", obj.docstring.value
            )
