"""From a request to its detokenizer: which stops, which regions, and where the answer begins."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from stopscan import StopScanner, StopSet
from stopscan._protect import Region, Regions, protected, regions
from stopscan.vllm._detokenizer import ScanningDetokenizer
from stopscan.vllm._options import options, refusal, stop_set
from stopscan.vllm._parts import trims_token_ids
from stopscan.vllm._pieces import decoder
from stopscan.vllm._regions import HiddenRegions, hidden_markers, prompt_end

if TYPE_CHECKING:
    from vllm.tokenizers import TokenizerLike
    from vllm.v1.engine import EngineCoreRequest
    from vllm.v1.engine.detokenizer import IncrementalDetokenizer

    from stopscan.vllm._engine import Engine


def scanning(
    detokenizer: IncrementalDetokenizer,
    tokenizer: TokenizerLike,
    request: EngineCoreRequest,
    engine: Engine | None = None,
    default: object = (),
) -> IncrementalDetokenizer | ScanningDetokenizer:
    """``detokenizer`` with its stops found by stopscan, or itself if it has none.

    ``default`` are the regions of a request that names none, as ``protect`` takes them.
    """
    params = request.sampling_params
    named = engine.named if engine else {}
    asked = options(params.extra_args, named, bool(default))
    if isinstance(detokenizer, ScanningDetokenizer) or not (params.stop or asked.patterns):
        return detokenizer
    stops, inside = stop_set(params.stop, asked.patterns), False
    protect = _default(default, named) if asked.protect is None else asked.protect
    if protect:
        begins = _begins(tokenizer, request, engine, protect)
        stops, inside = protected(stops, protect, begins, asked.start_protected)
    hidden = hidden_markers(tokenizer, stops.protect) if params.skip_special_tokens else {}
    opened = stops.protect[0] if inside and stops.protect else None
    scanner = StopScanner(
        _without(stops, hidden) if hidden else stops,
        include_stop=params.include_stop_str_in_output,
        start_protected=opened is not None and opened not in hidden,
    )
    closing = hidden[opened][1] if opened in hidden else None
    unseen = HiddenRegions(dict(hidden.values()), closing) if hidden else None
    made = decoder(detokenizer, tokenizer, request)
    return ScanningDetokenizer(detokenizer, made, scanner, unseen, trims=trims_token_ids())


def _default(protect: object, named: Mapping[str, Regions]) -> Regions:
    try:
        return regions(protect, named)
    except ValueError as error:
        raise refusal("stopscan", str(error)) from None


def _begins(tokenizer: TokenizerLike, request: EngineCoreRequest, engine: Engine | None, protect: Regions) -> str:
    """What the answer continues: the marker of the region that it begins in for vLLM, or else the prompt's end."""
    prompt = request.prompt_token_ids or []
    end = prompt_end(tokenizer, prompt)
    if engine is None or set(protect).isdisjoint(engine.named.get("reasoning", ())):
        return end
    opened = engine.opened(prompt, request.reasoning_parser_kwargs)
    return opened[0] if opened in protect and not end.rstrip().endswith(opened[1]) else end


def _without(stops: StopSet, regions: Container[Region]) -> StopSet:
    shown = [pair for pair in stops.protect if pair not in regions]
    return StopSet(stops.stop, patterns=stops.patterns, protect=shown)
