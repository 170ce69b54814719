"""`TokenSegmenter` returns the segments of the whole decoded text, whichever tokens spell this text."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from families import gemma, manual, metaspace, over, reciting, small_bytes, small_fallback, tekken
from hypothesis import given
from hypothesis import strategies as st
from reference import SegmentReference
from test_token_streams import WORDS, streams
from vocabularies import Vocabulary as Known
from whole import REASONS, Whole

from stopscan.segments import Segment, SegmentSet
from stopscan.tokens import TokenSegmenter

KINDS = over([manual, small_bytes, small_fallback, reciting, gemma, partial(tekken, "tekken_240911.json")])
REGIONS = ("answer", "reasoning", "tool")


class Labelled(SegmentReference):
    """A reference that also records the region of each character sent, and ``None`` for each character of a marker."""

    def reset(self) -> None:
        super().reset()
        self.labels: tuple[str | None, ...] = ()

    def pass_marker(self, marker: str, number: int) -> list[Segment]:
        if self.match or marker not in self.markers[self.state]:
            return []
        segments = self.flush()
        self.follow(marker)
        self.marker_ended = True
        return segments

    def _send(self, region: str, part: int, withheld: int, segments: list[Segment]) -> None:
        self.labels += (None,) * (self.sent - len(self.labels))
        super()._send(region, part, withheld, segments)
        self.labels += (region,) * (self.sent - len(self.labels))


def kept(whole: Whole) -> int:
    numbers = zip(whole.numbers, whole.reference.labels, strict=False)
    return max((number for number, label in numbers if label), default=0)


def gone(whole: Whole) -> int:
    """Returns the position, counted from 1, of the last token whose text was sent or taken out as a marker. Returns 0
    if there is none."""
    sent = len(whole.reference.labels)
    return whole.numbers[sent - 1] if sent else 0


def joined(segments: Sequence[Segment]) -> list[Segment]:
    whole: list[Segment] = []
    for region, text, part in segments:
        if whole and whole[-1][2] == part:
            text = whole.pop()[1] + text
        whole.append((region, text, part))
    return whole


def run(segmenter: TokenSegmenter, token_ids: Sequence[int], reason: Any = "eos") -> list[list[Segment]]:
    outputs = []
    for token_id in token_ids:
        outputs.append(segmenter.feed(token_id))
        if segmenter.finish is not None:
            return outputs
    return [*outputs, segmenter.flush(reason)]


def agree(vocabulary: Known, token_ids: Sequence[int], markers: Any, **options: Any) -> TokenSegmenter:
    """Compares a segmenter with the reference after each token, and returns the segmenter."""
    stops = {name: options.pop(name) for name in ("stop", "visible", "stop_in") if name in options}
    region = options.pop("region", None)
    include_stop = options.get("include_stop", False)
    reference = Labelled(markers, **stops, region=region, include_stop=include_stop)
    names = {token_id: text(vocabulary.book.raw(token_id)) for token_id in vocabulary.special}
    whole = Whole(vocabulary.book, token_ids, **options, marker=names.get, reference=reference)
    reason = options.pop("reason", "eos")
    segmenter = TokenSegmenter(vocabulary.tokenizer, SegmentSet(markers, **stops), region=region, **options)
    many = segmenter.copy()
    outputs = run(segmenter, token_ids, reason)
    assert outputs == [joined(output) for output in whole.outputs]
    assert segmenter.finish == whole.finish
    assert segmenter.match == (whole.finish and whole.finish.match)
    assert segmenter.region == reference.region
    assert (segmenter.tokens_seen, segmenter.tokens_kept) == (whole.seen, kept(whole))
    assert segmenter.tokens_in == whole.tokens_in(gone(whole))
    assert segmenter.held == ""
    assert joined(many.feed_many(token_ids) + many.flush(reason)) == joined([s for output in outputs for s in output])
    assert observed(many) == observed(segmenter)
    return segmenter


def text(raw: str | bytes | int) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)


def observed(segmenter: TokenSegmenter) -> tuple[Any, ...]:
    counts = segmenter.tokens_seen, segmenter.tokens_kept, segmenter.tokens_in
    return segmenter.finish, segmenter.match, segmenter.held, segmenter.region, counts


@st.composite
def cut(draw: Callable[..., Any], vocabulary: Known) -> tuple[list[int], dict[str, Any]]:
    """Token ids, and markers and stops that are often in their text. Some markers and stops are special tokens."""
    token_ids, stop = draw(streams(vocabulary))
    names = [text(vocabulary.book.raw(token_id)) for token_id in token_ids if token_id in vocabulary.special]
    words = st.sampled_from([*WORDS, *stop, *names])
    regions = REGIONS[: draw(st.integers(1, 3))]
    stop = [word for word in stop if draw(st.booleans())]
    markers: dict[str, dict[str, str]] = {}
    for region in regions:
        taken = [word for word in draw(st.lists(words, max_size=3, unique=True)) if word not in stop]
        reachable = [word for word in taken if not any(other in word[:-1] for other in taken)]
        markers[region] = {marker: draw(st.sampled_from(regions)) for marker in reachable}
    return token_ids, {"markers": markers, "stop": stop, "region": draw(st.sampled_from(regions))}


@KINDS
@given(data=st.data())
def test_everything_is_that_of_the_whole_text(vocabulary: Known, data: st.DataObject) -> None:
    token_ids, options = data.draw(cut(vocabulary))
    agree(
        vocabulary,
        token_ids,
        **options,
        include_stop=data.draw(st.booleans()),
        skip_special_tokens=data.draw(st.booleans()),
        prompt_token_ids=data.draw(streams(vocabulary))[0],
        reason=data.draw(st.sampled_from(REASONS)),
    )


@KINDS
@given(data=st.data())
def test_ids_that_end_and_limits(vocabulary: Known, data: st.DataObject) -> None:
    token_ids, options = data.draw(cut(vocabulary))
    ends = st.lists(st.sampled_from([*token_ids, *vocabulary.special]), max_size=2)
    min_tokens = data.draw(st.integers(0, len(token_ids)))
    agree(
        vocabulary,
        token_ids,
        **options,
        stop_token_ids=data.draw(ends),
        eos_token_ids=data.draw(ends),
        min_tokens=min_tokens,
        max_tokens=data.draw(st.none() | st.integers(max(min_tokens, 1), len(token_ids) + 1)),
        skip_special_tokens=data.draw(st.booleans()),
    )


@over([small_bytes, small_fallback, reciting, partial(metaspace, "first")])
@given(data=st.data())
def test_copies_pickles_and_resets_go_on_as_the_original(vocabulary: Known, data: st.DataObject) -> None:
    token_ids, options = data.draw(cut(vocabulary))
    segments = SegmentSet(options["markers"], stop=options["stop"])
    prompt = data.draw(streams(vocabulary))[0]
    at = data.draw(st.integers(0, len(token_ids)))
    segmenter = TokenSegmenter(vocabulary.tokenizer, segments, region=options["region"], prompt_token_ids=prompt)
    start = segmenter.copy()
    before = [segmenter.feed(token_id) for token_id in token_ids[:at]]
    others = [segmenter.copy(), copy.copy(segmenter), copy.deepcopy(segmenter)]
    others += [pickle.loads(pickle.dumps(segmenter, protocol)) for protocol in range(6)]
    assert [observed(other) for other in others] == [observed(segmenter)] * len(others)
    after = run(segmenter, token_ids[at:])
    for other in others:
        assert run(other, token_ids[at:]) == after
        assert observed(other) == observed(segmenter)
    segmenter.reset()
    assert observed(segmenter) == observed(start)
    assert [segmenter.feed(token_id) for token_id in token_ids[:at]] == before
    assert run(segmenter, token_ids[at:]) == after
