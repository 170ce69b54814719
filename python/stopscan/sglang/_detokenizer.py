"""The hook of the detokenizer process: it uses the text that the scheduler made for requests with stops."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from copy import copy
from typing import Any

from sglang.srt.managers.io_struct import unwrap_from_pickle, wrap_as_pickle

from stopscan.sglang._scheduler import KEY


def decode(manager: Any, recv: Any) -> Generator[tuple[Any, ...] | None, list[str], list[str] | None]:
    """Wraps ``_decode_batch_token_id_output``, which returns the new text of each request in a batch. For a request
    with stops, returns the text that the scheduler stored in ``customized_info``. Also removes this text from
    ``customized_info``, because sglang sends everything that is left there to the client."""
    info = unwrap_from_pickle(recv.customized_info) if recv.customized_info is not None else {}
    rows = info.pop(KEY, None)
    if rows is None:
        yield None
        return None
    recv.customized_info = wrap_as_pickle(info) if info else None
    # Each row is the new output of one request. sglang decodes the rows of requests without stops, and all rows without
    # a new token. The first row of a request with stops may be without a new token.
    decoded_by_sglang = [place for place, texts in enumerate(rows) if not texts or None in texts]
    made = dict(zip(decoded_by_sglang, (yield (manager, _part(recv, decoded_by_sglang))), strict=True))
    return [made[place] if place in made else "".join(texts) for place, texts in enumerate(rows)]


def _part(recv: Any, places: Sequence[int]) -> Any:
    """Returns a copy of the scheduler's message ``recv`` that has only the rows at the indexes ``places``. Each row is
    the new output of one request."""
    part, count = copy(recv), len(recv.rids)
    for name in recv.__struct_fields__:
        value = getattr(recv, name)
        if isinstance(value, list) and len(value) == count:
            setattr(part, name, [value[place] for place in places])
    return part
