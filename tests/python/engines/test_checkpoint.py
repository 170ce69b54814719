"""``Checkpoint``: which regions a model's output has, in which of them an answer begins, and how scanners are made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="the extra stopscan[tokenizers] is not installed")

from stopscan import Repeat, StopSet
from stopscan.engines import CHAT, Checkpoint, Row, read_options
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
    options = {"protect": protect, "default": default, "skip_special_tokens": False}
    row = checkpoint.scanner(StopSet(" END"), **options)
    assert read(row, ["<think>", "hm", " END", "</think>", "Hello", " END", "\n"]) == text
    assert row.finish == Finish("stop_sequence", " END", offset=len(text))


def test_a_default_may_name_regions_that_the_model_lacks() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    assert bare.stops(StopSet("END"), None, CHAT) == StopSet("END")
    with pytest.raises(ValueError, match=r"^protect: this model has no markers for 'reasoning'"):
        bare.stops(StopSet("END"), ["reasoning"])


def test_a_set_is_compiled_once(checkpoint: Checkpoint) -> None:
    """The server for mlx-lm used to compile each set a second time, in the thread that generates all answers."""
    options = read_options({"stop": ["END"], "protect": ["reasoning"]})
    first = checkpoint.stops(options.stops, options.protect)
    assert Checkpoint(TOKENIZER.backend, graph=QWEN3).stops(StopSet(["END"]), ["reasoning"]) is first


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
    stops = checkpoint.stops(StopSet("END"), CHAT)
    ids = IDS(prompt)
    text = TOKENIZER.backend.decode(ids, skip_special_tokens=False)
    for given in (ids, tuple(ids), text, SimpleNamespaceIds(ids)):
        assert checkpoint.begins(stops, given) == region
    assert checkpoint.begins(stops, ids, True) == "reasoning"
    assert checkpoint.begins(stops, ids, False) == "answer"
    assert checkpoint.scanner(StopSet("END"), ids, default=CHAT).region == region.split("/")[0]


class SimpleNamespaceIds:
    """Stands for an array of token ids: it has slices and `tolist()`."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def __getitem__(self, part: slice) -> SimpleNamespaceIds:
        return SimpleNamespaceIds(self.ids[part])

    def tolist(self) -> list[int]:
        return self.ids


def test_the_engines_own_word_counts_where_no_marker_speaks(checkpoint: Checkpoint) -> None:
    """A prompt that ends in ``<think>\\nOkay, `` has no marker at its end. An engine that knows that the model is still
    reasoning passes ``inside=True``."""
    stops = checkpoint.stops(StopSet("END"), CHAT)
    assert checkpoint.begins(stops, IDS(["<think>", "Hello"]), inside=True) == "reasoning"
    assert checkpoint.begins(stops, IDS(["<think>", "</think>"]), inside=True) == "answer/after reasoning"
    assert checkpoint.begins(stops, IDS(["<think>", "Hello"]), False, inside=True) == "answer"
    assert checkpoint.begins(StopSet("END"), IDS(["<think>"]), inside=True) is None


def test_pairs_of_markers_begin_where_the_prompt_ends() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    stops = bare.stops(StopSet("END"), ["<think>", "</think>"])
    assert bare.begins(stops, IDS(["<think>", "\n"])) == "<think>"
    assert bare.begins(stops, IDS(["Hello"])) is None
    with pytest.raises(ValueError, match=r"^start_protected: the stops have no protected region"):
        bare.begins(StopSet("END"), (), True)


def test_a_prompt_without_regions_is_not_decoded() -> None:
    bare = Checkpoint(TOKENIZER.backend)
    assert bare.begins(StopSet("END"), object()) is None


def test_tokens_as_engines_draw_them(checkpoint: Checkpoint) -> None:
    row = checkpoint.scanner(StopSet("END"), eos_token_ids=EOS, min_tokens=9)
    assert row.feed_many([*IDS(["Hello"]), 100_000]) == "Hello"
    assert (row.feed(EOS), row.finish, row.tokens_seen) == ("", Finish("eos"), 3)


@pytest.mark.parametrize("stops", [StopSet(), StopSet("END"), StopSet(repeat=Repeat())], ids=str)
def test_the_tokens_of_each_region_are_counted(checkpoint: Checkpoint, stops: StopSet) -> None:
    row = checkpoint.scanner(stops, default=CHAT)
    read(row, ["<think>", "hm", "hm", "</think>", "Hello"])
    assert row.tokens_in["reasoning"] == 2
    assert row.tokens_in["answer"] == 1


def test_segments_of_an_answer(checkpoint: Checkpoint) -> None:
    segments = SegmentSet(QWEN3, stop=" END", stop_in=["answer"])
    row = checkpoint.segmenter(segments, IDS(["<think>", "\n"]))
    found = [segment[:2] for segment in row.feed_many(IDS(["hm", " END", "</think>", "Hello", " END"]))]
    assert found == [("reasoning", "hm END"), ("answer", "Hello")]
    assert checkpoint.segmenter(QWEN3, IDS(["<think>"]), region="answer").region == "answer"


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
