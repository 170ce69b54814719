"""The real vocabularies whose reading is measured."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from workload import tokenizer


def vocabularies() -> dict[str, Callable[[], Any]]:
    """Fresh ones, from what is installed; litellm carries tiktoken's files."""
    made: dict[str, Callable[[], Any]] = {"claude (tokenizers)": lambda: Tokenizer.from_str(tokenizer().to_str())}
    spec = find_spec("litellm")
    if find_spec("tiktoken") and spec is not None and spec.submodule_search_locations:
        import tiktoken

        os.environ["TIKTOKEN_CACHE_DIR"] = str(
            Path(spec.submodule_search_locations[0], "litellm_core_utils/tokenizers")
        )
        made["o200k_base (tiktoken)"] = lambda: tiktoken.Encoding(**parts_of(tiktoken.get_encoding("o200k_base")))
    if find_spec("mistral_common"):
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        spec = find_spec("mistral_common")
        assert spec is not None
        assert spec.submodule_search_locations
        path = Path(spec.submodule_search_locations[0], "data/tekken_240911.json")
        made["tekken (mistral-common)"] = lambda: Tekkenizer.from_file(path)
    return made


def parts_of(encoding: Any) -> dict[str, Any]:
    return {
        "name": encoding.name,
        "pat_str": encoding._pat_str,
        "mergeable_ranks": encoding._mergeable_ranks,
        "special_tokens": encoding._special_tokens,
    }
