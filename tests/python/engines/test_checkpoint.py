"""``Checkpoint``: which regions a model's output has, in which of them an answer begins, and how scanners are made."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="the extra stopscan[tokenizers] is not installed")

from stopscan import Repeat, StopSet
from stopscan.engines import CHAT, Checkpoint, Defaults, Row, StopOptions, read_options
from stopscan.engines.selftest import Tokenizer
from stopscan.finish import Finish
from stopscan.segments import FORMATS, SegmentSet

SPECIAL = ["<|eos|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
TOKENIZER = Tokenizer(["Hello", " END", "\n", "hm"], SPECIAL)
IDS = TOKENIZER.ids
(EOS,) = IDS(["<|eos|>"])
QWEN3 = FORMATS["qwen3"]


@pytest.fixture
def checkpoint() -> Checkpoint:
    return Checkpoint(TOKENIZER.backend, graph=QWEN3)


def read(row: Any, pieces: list[str | bytes]) -> str:
    return "".join(map(row.feed, IDS(pieces))) + row.flush()


def test_the_graph_is_the_tokenizers_or_the_engines_own() -> None:
    template = "".join(marker for markers in QWEN3.values() for marker in markers)
    carrier = SimpleNamespace(chat_template=template, backend_tokenizer=TOKENIZER.backend)
    assert {*Checkpoint(carrier).graph} >= {"answer", "reasoning", "tool_call"}
    assert Checkpoint(TOKENIZER.backend).graph == {}
    assert Checkpoint(carrier, graph={}).graph == {}


@pytest.mark.parametrize(
    ("protect", "default", "text"),
    [
        (None, (), "<think>hm"),
        (None, CHAT, "<think>hm END</think>Hello"),
        ((), CHAT, "<think>hm"),
        (["reasoning"], (), "<think>hm END</think>Hello"),
        (["<think>", "</think>"], (), "<think>hm END</think>Hello"),
    ],
)
def test_where_stops_fire(checkpoint: Checkpoint, protect: Any, default: Any, text: str) -> None:
    options = read_options({"stop": " END", "protect": protect}, default=default)
    row = checkpoint.scanner(options, skip_special_tokens=False)
    assert read(row, ["<think>", "hm", " END", "</think>", "Hello", " END", "\n"]) == text
    assert row.finish == Finish("stop_sequence", " END", offset=len(text))


def test_a_default_may_name_regions_that_the_model_lacks() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    for defaults in (Defaults(), Defaults(protect=("reasoning",))):
        options = read_options({"stop": "END"}, defaults, default=CHAT)
        assert bare.stops(options) == StopSet("END")
        assert bare.segmenter(options).region == "answer"
    for make in (bare.stops, bare.scanner, bare.segmenter):
        with pytest.raises(ValueError, match=r"^protect: this model has no markers for 'reasoning'"):
            make(read_options({"stop": "END", "protect": ["reasoning"]}))


def test_a_set_is_compiled_once(checkpoint: Checkpoint) -> None:
    """Equal options must give the same set object, so that it is compiled once. Before a fix, the server for mlx-lm
    compiled each set twice, once in the thread that generates all answers."""
    body = {"stop": ["END"], "protect": ["reasoning"]}
    first = checkpoint.stops(read_options(body))
    assert Checkpoint(TOKENIZER.backend, graph=QWEN3).stops(read_options(json.loads(json.dumps(body)))) is first


@pytest.mark.parametrize(
    ("prompt", "region"),
    [
        ([], "answer"),
        (["Hello", "<think>", "\n"], "reasoning"),
        (["<think>", "\n", "\n", "</think>", "\n"], "answer/after reasoning"),
        (["<think>", "hm", "<|im_end|>", "\n"], "answer"),
        (["Hello"] * 200 + ["<think>"], "reasoning"),
        (["<think>"] + ["Hello"] * 200, "answer"),
    ],
)
def test_the_prompts_end_says_where_the_answer_begins(checkpoint: Checkpoint, prompt: list[Any], region: str) -> None:
    options = read_options({"stop": "END"}, default=CHAT)
    stops, ids = checkpoint.stops(options), IDS(prompt)
    text = TOKENIZER.backend.decode(ids, skip_special_tokens=False)
    for given in (ids, tuple(ids), text, SimpleNamespaceIds(ids)):
        assert checkpoint.start_region(options, stops, given) == region
    for make in (checkpoint.scanner, checkpoint.segmenter):
        assert make(options, ids).region == region.split("/")[0]
        assert make(replace(options, start_protected=True), ids).region == "reasoning"
        assert make(replace(options, start_protected=False), ids, inside=True).region == "answer"
        assert make(options, ids, region="tool_call").region == "tool_call"


class SimpleNamespaceIds:
    """Stands for an array of token ids: it has slices and `tolist()`."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def __getitem__(self, part: slice) -> SimpleNamespaceIds:
        return SimpleNamespaceIds(self.ids[part])

    def tolist(self) -> list[int]:
        return self.ids


def test_the_engines_own_word_counts_where_no_marker_speaks(checkpoint: Checkpoint) -> None:
    """An engine passes ``inside=True`` if it knows that the model is still reasoning. If the prompt ends with a marker,
    the marker decides instead."""
    options = read_options({"stop": "END"}, default=CHAT)
    for make in (checkpoint.scanner, checkpoint.segmenter):
        assert make(options, IDS(["<think>", "Hello"]), inside=True).region == "reasoning"
        assert make(options, IDS(["<think>", "</think>"]), inside=True).region == "answer"
    assert checkpoint.start_region("END", StopSet("END"), IDS(["<think>"]), inside=True) is None


def test_pairs_of_markers_begin_where_the_prompt_ends() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    options = read_options({"stop": "END", "protect": ["<think>", "</think>"]})
    stops = bare.stops(options)
    assert bare.start_region(options, stops, IDS(["<think>", "\n"])) == "<think>"
    assert bare.start_region(options, stops, IDS(["Hello"])) is None
    with pytest.raises(ValueError, match=r"^start_protected: the stops have no protected region"):
        bare.scanner(StopOptions(StopSet("END"), start_protected=True))


def test_a_prompt_without_regions_is_not_decoded() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    assert bare.start_region("END", StopSet("END"), object()) is None


def test_tokens_as_engines_draw_them(checkpoint: Checkpoint) -> None:
    options = read_options({"stop": "END", "min_tokens": 9})
    row = checkpoint.scanner(options, eos_token_ids=EOS, prompt_token_ids=[100_000])
    assert row.feed_many([*IDS(["Hello"]), 100_000]) == "Hello"
    assert (row.feed(EOS), row.finish, row.tokens_seen) == ("", Finish("eos"), 3)


@pytest.mark.parametrize("stops", [StopSet(), StopSet("END"), StopSet(repeat=Repeat())], ids=str)
def test_the_tokens_of_each_region_are_counted(checkpoint: Checkpoint, stops: StopSet) -> None:
    row = checkpoint.scanner(StopOptions(stops, default=CHAT))
    read(row, ["<think>", "hm", "hm", "</think>", "Hello"])
    assert row.tokens_in["reasoning"] == 2
    assert row.tokens_in["answer"] == 1


def test_segments_of_an_answer(checkpoint: Checkpoint) -> None:
    segments = SegmentSet(QWEN3, stop=" END", stop_in=["answer"])
    row = checkpoint.segmenter(segments, IDS(["<think>", "\n"]))
    found = [segment[:2] for segment in row.feed_many(IDS(["hm", " END", "</think>", "Hello", " END"]))]
    assert found == [("reasoning", "hm END"), ("answer", "Hello")]
    assert checkpoint.segmenter(QWEN3, IDS(["<think>"]), region="answer").region == "answer"
    with pytest.raises(ValueError, match=r"^protect: a SegmentSet takes no protect and no start_protected"):
        checkpoint.segmenter(StopOptions(segments, start_protected=False))


def test_a_segmenter_takes_what_a_scanner_takes(checkpoint: Checkpoint) -> None:
    """For the same request and prompt, a scanner and a segmenter must give the same answer: one as text, the other as
    segments."""
    body = {"stop_sequences": [" END"], "protect": ["reasoning"], "stop_token_ids": [EOS], "min_tokens": 2}
    options, engine = read_options(body, default=CHAT), {"max_tokens": 9, "skip_special_tokens": False}
    pieces = ["hm", " END", "</think>", "Hello", " END", "\n"]
    text = checkpoint.scanner(options, IDS(["<think>"]), **engine)
    parts = checkpoint.segmenter(options, IDS(["<think>"]), **engine)
    assert text.feed_many(IDS(pieces)) == "hm END</think>Hello"
    assert [part[:2] for part in parts.feed_many(IDS(pieces))] == [("reasoning", "hm END"), ("answer", "Hello")]
    assert text.finish == parts.finish == Finish("stop_sequence", " END", offset=len("hm END</think>Hello"))
    assert text.tokens_in["reasoning"] == parts.tokens_in["reasoning"] == 2


def test_default_with_undecodable_marker_is_left_out() -> None:
    """The marker ``<think>\\n`` is a special token and a newline. If special tokens are left out of the text, the
    marker is never found. If its region is protected only by default, and not by the request, the region must then be
    ignored. Before a fix, some engines refused the request."""
    form = {"answer": {"<think>\n": "reasoning"}, "reasoning": {"</think>": "answer"}}
    checkpoint = Checkpoint(TOKENIZER.backend, graph=form)
    pieces = ["<think>", "\n", "hm", " END"]
    for body in ({"stop": " END"}, {}):
        for defaults in (Defaults(), Defaults(protect=("reasoning",))):
            row = checkpoint.scanner(read_options(body, defaults, default=CHAT))
            assert read(row, pieces) == "\nhm" + " END" * (not body)
    with pytest.raises(ValueError, match=r"^protect: .*<think>"):
        checkpoint.scanner(read_options({"stop": " END", "protect": ["reasoning"]}))
    shown = checkpoint.scanner(read_options({"stop": " END"}, default=CHAT), skip_special_tokens=False)
    assert read(shown, pieces) == "<think>\nhm END"


def test_a_route_may_set_the_whole_answer_apart(checkpoint: Checkpoint) -> None:
    options = read_options({"stop": " END", "repeat": True}, default=["answer", "reasoning"])
    assert checkpoint.stops(options) == StopSet(regions=QWEN3, repeat=Repeat())
    assert read(checkpoint.scanner(options), ["Hello", " END"]) == "Hello END"
    named = read_options({"stop": " END", "protect": []}, default=["answer"])
    assert read(checkpoint.scanner(named), ["Hello", " END"]) == "Hello"


def test_regions_that_are_not_protected_are_text_if_narrow() -> None:
    checkpoint = Checkpoint(TOKENIZER.backend, graph=QWEN3, narrow=True)
    options = read_options({"stop": "k><tool_call>"}, default=["reasoning"])
    assert "tool_call" not in (checkpoint.stops(options).regions or ())
    row = checkpoint.scanner(replace(options, stops=StopSet("o<tool_call>")), skip_special_tokens=False)
    assert (
        read(row, ["<think>", "o", "<tool_call>", "</think>", "Hello", "<tool_call>"])
        == "<think>o<tool_call></think>Hell"
    )
    assert checkpoint.stops(read_options({"stop": "END"})) == StopSet("END")


def test_a_row_has_the_api_of_its_scanner(checkpoint: Checkpoint) -> None:
    row: Row[str] = Row(checkpoint.scanner(StopSet(" END!")))
    assert row.feed_many(IDS(["Hello", " END"])) == "Hello"
    other, snapshot = row.copy(), row.snapshot()
    assert (row.held, row.region, row.match, row.finish) == (" END", "answer", None, None)
    assert (row.tokens_seen, row.tokens_kept, row.tokens_in) == (2, 1, {"answer": 1})
    assert (row.feed(*IDS([b"!"])), row.finish) == ("", Finish("stop_sequence", " END!", offset=5))
    assert other.flush("length") == " END"
    row.restore(snapshot)
    assert row.flush("abort") == " END"
    row.reset()
    assert row.tokens_seen == 0
    assert repr(row).startswith("Row(")
