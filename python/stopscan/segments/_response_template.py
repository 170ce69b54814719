from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stopscan.segments._formats import Format


def from_response_template(template: Mapping[str, Any], /) -> Format:
    """The markers of a transformers ``response_template``."""
    raise NotImplementedError
