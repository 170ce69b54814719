"""`TokenSegmenter` says what cutting the whole decoded text says, whatever tokens the text came in."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from families import claude, gemma, metaspace, over, reciting, small_bytes, small_fallback, tekken
from hypothesis import given
from hypothesis import strategies as st
from reference import SegmentReference
from test_token_streams import WORDS, streams
from tokenizers import Tokenizer, models
from vocabularies import Vocabulary as Known
from vocabularies import staged
from whole import REASONS, Whole, ended, stopped

from stopscan import StopMatch
from stopscan.finish import Finish
from stopscan.segments import SegmentSet
from stopscan.tokens import TokenSegmenter, Vocabulary

KINDS = over([claude, small_bytes, small_fallback, reciting, gemma, partial(tekken, "tekken_240911.json")])
REGIONS = ("answer", "reasoning", "tool")
THINKING = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}


class Labelled(SegmentReference):
    """The reference, which also says of each character in which region it went out; ``None`` is a marker."""

    def reset(self) -> None:
        super().reset()
        self.labels: tuple[str | None, ...] = ()
        self.marks: tuple[int, ...] = ()  # tokens without text that were markers

    def pass_marker(self, marker: str, number: int) -> list[tuple[str, str]]:
        if self.match or marker not in self.markers[self.state]:
            return []
        segments = self.flush()
        self.state = self.markers[self.state][marker]
        self.marks += (number,)
        return segments

    def _send(self, region: str, withheld: int, segments: list[tuple[str, str]]) -> None:
        self.labels += (None,) * (self.sent - len(self.labels))
        super()._send(region, withheld, segments)
        self.labels += (region,) * (self.sent - len(self.labels))


def counted(whole: Whole, count: int) -> dict[str, int]:
    """How many tokens each region has, found by asking for each token what its text became."""
    labels = [*whole.reference.labels, *[None] * len(whole.numbers)]
    counts = dict.fromkeys(whole.reference.markers, 0)
    for token in range(1, count + 1):
        own = [label for number, label in zip(whole.numbers, labels, strict=False) if number == token]
        region = next((label for label in own if label), None)
        if not own:  # it counts with the text that comes next
            number, label = next(
                (pair for pair in zip(whole.numbers, labels, strict=False) if pair[0] > token), (count + 1, None)
            )
            region = None if any(token <= mark < number for mark in whole.reference.marks) else label
        if region:
            counts[region] += 1
    return counts


def kept(whole: Whole) -> int:
    numbers = zip(whole.numbers, whole.reference.labels, strict=False)
    return max((number for number, label in numbers if label), default=0)


def joined(segments: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    whole: list[tuple[str, str]] = []
    for region, text in segments:
        if whole and whole[-1][0] == region:
            text = whole.pop()[1] + text
        whole.append((region, text))
    return whole


def run(segmenter: TokenSegmenter, token_ids: Sequence[int], reason: Any = "eos") -> list[list[tuple[str, str]]]:
    outputs = []
    for token_id in token_ids:
        outputs.append(segmenter.feed(token_id))
        if segmenter.finish is not None:
            return outputs
    return [*outputs, segmenter.close(reason)]


def agree(vocabulary: Known, token_ids: Sequence[int], markers: Any, **options: Any) -> TokenSegmenter:
    """The segmenter after all tokens, all of which was what the oracle says."""
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
    assert segmenter.tokens_in == counted(whole, whole.count)
    assert segmenter.held == ""
    assert joined(many.feed_many(token_ids) + many.close(reason)) == joined([s for output in outputs for s in output])
    assert observed(many) == observed(segmenter)
    return segmenter


def text(raw: str | bytes | int) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)


def observed(segmenter: TokenSegmenter) -> tuple[Any, ...]:
    counts = segmenter.tokens_seen, segmenter.tokens_kept, segmenter.tokens_in
    return segmenter.finish, segmenter.match, segmenter.held, segmenter.region, counts


@st.composite
def cut(draw: Callable[..., Any], vocabulary: Known) -> tuple[list[int], dict[str, Any]]:
    """Token ids, and markers and stops that are in their text or nearly, some of them special tokens."""
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


def test_one_token_may_be_of_two_regions_and_a_marker() -> None:
    tokenizer, ids = staged("Is it 5", "?</think>It", " is", " 6", "<th", "ink>", "x")
    segmenter = TokenSegmenter(tokenizer, THINKING, region="reasoning")
    outputs = [segmenter.feed(token_id) for token_id in ids]
    assert outputs[:3] == [[("reasoning", "Is it 5")], [("reasoning", "?"), ("answer", "It")], [("answer", " is")]]
    assert outputs[3:] == [[("answer", " 6")], [], [], [("reasoning", "x")]]
    # "?</think>It" counts once, where its text begins, and the two of "<think>" do not count.
    assert segmenter.tokens_in == {"answer": 2, "reasoning": 3}
    assert (segmenter.tokens_seen, segmenter.tokens_kept) == (7, 7)


def test_half_characters_and_skipped_tokens_count_with_the_text_that_follows() -> None:
    tokenizer, ids = staged(b"\xf0\x9f", b"\x9a\x80", "<pad>", "<think>", "a", b"\xc3", special=["<pad>", "<think>"])
    segmenter = TokenSegmenter(tokenizer, THINKING)
    half, rest, pad, think, a, begun = ids
    assert segmenter.feed_many([half, rest, pad, think, pad, a, begun]) == [("answer", "🚀"), ("reasoning", "a")]
    assert segmenter.tokens_in == {"answer": 2, "reasoning": 2}  # the first <pad> comes before a marker
    assert segmenter.close() == [("reasoning", "\ufffd")]
    assert segmenter.tokens_in == {"answer": 2, "reasoning": 3}


def test_tokens_that_are_held_count_when_they_are_given_out() -> None:
    tokenizer, ids = staged("a", "</", "th", "!", "E", "ND")
    segmenter = TokenSegmenter(tokenizer, SegmentSet(THINKING, stop=["END"]), region="reasoning")
    counts = []
    for token_id in ids:
        segmenter.feed(token_id)
        counts.append(segmenter.tokens_in["reasoning"])
    assert counts == [1, 1, 1, 4, 4, 4]  # a hidden stop counts nowhere
    assert segmenter.finish == stopped(6)
    assert (segmenter.tokens_seen, segmenter.tokens_kept) == (6, 4)


def test_a_marker_of_several_tokens_some_of_them_special() -> None:
    names = ["<|channel|>", "<|message|>"]
    markers = {"answer": {"<|channel|>analysis<|message|>": "reasoning"}, "reasoning": {}}
    tokenizer, ids = staged(names[0], "analysis", names[1], "Hm", special=names)
    segmenter = TokenSegmenter(tokenizer, markers, skip_special_tokens=False)
    assert segmenter.feed_many(ids) == [("reasoning", "Hm")]
    assert segmenter.tokens_in == {"answer": 0, "reasoning": 1}


def test_every_end_is_reported_as_by_the_scanner() -> None:
    tokenizer, (a, end) = staged("a", "</s>", special=["</s>"])
    ends: list[tuple[dict[str, Any], Finish]] = [
        ({"eos_token_ids": end}, Finish("eos")),
        ({"stop_token_ids": end}, ended(end)),
        ({"max_tokens": 2}, Finish("length")),
    ]
    for options, finish in ends:
        segmenter = TokenSegmenter(tokenizer, THINKING, **options)
        assert (segmenter.feed_many([a, end, a]), segmenter.finish) == ([("answer", "a")], finish)
        assert (segmenter.feed(a), segmenter.close("abort"), segmenter.finish) == ([], [], finish)
    segmenter = TokenSegmenter(tokenizer, THINKING)
    assert (segmenter.feed(a), segmenter.close("abort"), segmenter.finish) == ([("answer", "a")], [], Finish("abort"))


def test_the_match_counts_markers() -> None:
    tokenizer, ids = staged("5</think>", "6 END")
    segmenter = TokenSegmenter(tokenizer, SegmentSet(THINKING, stop=["END"]), region="reasoning")
    assert segmenter.feed_many(ids) == [("reasoning", "5"), ("answer", "6 ")]
    assert segmenter.match == StopMatch("END", 11)


def test_patterns_end_a_stream() -> None:
    tokenizer, ids = staged("5</think>", "6 us", "er 7:", " 8")
    segments = SegmentSet(THINKING, patterns=[r"user ?\d:"])
    segmenter = TokenSegmenter(tokenizer, segments, region="reasoning")
    assert segmenter.feed_many(ids) == [("reasoning", "5"), ("answer", "6 ")]
    assert segmenter.finish == stopped(11, "user 7:")


def test_a_tokenizer_that_decodes_itself() -> None:
    """Without a decoder, tokens are joined by spaces."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "think": 1, "b": 2, "END": 3}, unk_token="a"))
    assert not Vocabulary(tokenizer).native
    segments = SegmentSet({"answer": {"think": "reasoning"}, "reasoning": {}}, stop=["END"])
    segmenter = TokenSegmenter(tokenizer, segments)
    outputs = [segmenter.feed(token_id) for token_id in [0, 0, 1, 2]]
    assert outputs == [[("answer", "a")], [("answer", " a")], [("answer", " ")], [("reasoning", " b")]]
    assert segmenter.tokens_in == {"answer": 3, "reasoning": 1}
    other = copy.copy(segmenter)
    assert pickle.loads(pickle.dumps(segmenter)).feed(3) == other.feed(3) == segmenter.feed(3) == [("reasoning", " ")]
    assert segmenter.finish == other.finish == stopped(12)


def test_what_is_refused() -> None:
    tokenizer, (a,) = staged("a")
    for options, error, message in [
        ({"region": "nowhere"}, ValueError, "nowhere"),
        ({"max_tokens": 2.5}, TypeError, "max_tokens"),
        ({"eos_token_ids": "2"}, TypeError, "eos_token_ids"),
        ({"prompt_token_ids": [7]}, ValueError, "prompt_token_ids"),
    ]:
        with pytest.raises(error, match=message):
            TokenSegmenter(tokenizer, THINKING, **options)
    segmenter = TokenSegmenter(tokenizer, THINKING)
    for token_id in (7, -1, 2**40):
        with pytest.raises(ValueError, match=str(token_id)):
            segmenter.feed(token_id)
    with pytest.raises(ValueError, match="7"):
        segmenter.feed_many([a, 7])
    with pytest.raises(TypeError, match="token_id"):
        segmenter.feed("a")  # type: ignore[arg-type]
    assert (segmenter.tokens_seen, segmenter.held) == (0, "")


def test_a_state_of_another_set_is_refused() -> None:
    tokenizer, ids = staged("a", "</")
    segmenter = TokenSegmenter(tokenizer, THINKING, region="reasoning")
    segmenter.feed_many(ids)
    state = segmenter.__reduce__()[2]
    for markers in ({"answer": {}}, {"answer": {}, "reasoning": {}}, {**THINKING, "tool": {}}):
        with pytest.raises(ValueError, match="of another set"):
            TokenSegmenter(tokenizer, markers).__setstate__(state)
