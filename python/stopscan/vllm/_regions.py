from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stopscan.vllm._options import Pairs

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike

# Tokens of the prompt's end in which an opening marker is looked for: chat templates end with it and a line break.
_TAIL = 32


def first_region(
    tokenizer: TokenizerLike, prompt_token_ids: Sequence[int] | None, protect: Pairs, start_protected: bool | None
) -> tuple[str, str] | None:
    """The region in which the answer begins: the first if ``start_protected``, with ``None`` the one the prompt opens.

    Only the prompt's end counts: a marker that is quoted in a question must not take the stops away.
    """
    if start_protected is False or not protect:
        return None
    if start_protected:
        return protect[0]
    if not prompt_token_ids:
        return None
    tail = tokenizer.decode(list(prompt_token_ids[-_TAIL:]), skip_special_tokens=False).rstrip()
    return next((pair for pair in protect if tail.endswith(pair[0])), None)


def skipped_ids(tokenizer: TokenizerLike, protect: Pairs) -> dict[tuple[str, str], tuple[int, int]]:
    """The token ids of the markers that ``skip_special_tokens`` leaves out of the text: only they show the region."""
    found = {}
    for pair in protect:
        opening, closing = (_token_id(tokenizer, marker) for marker in pair)
        if opening is not None and closing is not None and not all(_shown(tokenizer, i) for i in (opening, closing)):
            found[pair] = (opening, closing)
    return found


def _token_id(tokenizer: TokenizerLike, marker: str) -> int | None:
    token_id: Any = tokenizer.convert_tokens_to_ids(marker)
    # Unknown tokens get the id of another one.
    known = (
        isinstance(token_id, int) and tokenizer.decode([token_id], skip_special_tokens=False).strip() == marker.strip()
    )
    return token_id if known else None


def _shown(tokenizer: TokenizerLike, token_id: int) -> bool:
    return bool(tokenizer.decode([token_id], skip_special_tokens=True))


def reasoning_markers(config: Any, tokenizer: TokenizerLike) -> Pairs:
    """The markers of the reasoning parser that an engine is configured with."""
    from vllm.reasoning import ReasoningParserManager

    name = config.structured_outputs_config.reasoning_parser
    if not name:
        raise ValueError("stopscan: protect='reasoning' needs a reasoning parser, and this engine has none")
    parser = ReasoningParserManager.get_reasoning_parser(name)(tokenizer)
    opening, closing = parser.reasoning_start_str, parser.reasoning_end_str
    if not opening or not closing:
        raise ValueError(f"stopscan: the reasoning parser {name!r} names no start and end; name the markers instead")
    return ((opening, closing),)
