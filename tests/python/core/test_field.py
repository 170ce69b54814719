"""Bugs of other projects. Each test checks that stopscan does not have a bug that was found in one of these
projects."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from stopscan import StopMatch, StopScanner, StopSet, scan, truncate

THINK = [("<think>", "</think>")]


def feed_all(scanner: StopScanner, deltas: Iterable[str]) -> list[str]:
    return [scanner.feed(delta) for delta in deltas]


def test_vllm_holds_longest_stop_minus_one() -> None:
    """vLLM withholds the last 18 characters of any text if a stop has 19 characters."""
    scanner = StopScanner("<|end_of_my_turn|>!")
    assert feed_all(scanner, ["Hello", ", ", "world"]) == ["Hello", ", ", "world"]
    assert (scanner.feed(" <|end"), scanner.held) == (" ", "<|end")
    assert (scanner.feed("ing"), scanner.held) == ("<|ending", "")


def test_mlx_lm_holds_all_of_a_run() -> None:
    scanner = StopScanner("ab")
    assert feed_all(scanner, "aaaa") == ["", "a", "a", "a"]
    assert scanner.flush() == "a"


def test_smg_2203_holds_as_much_as_the_longest_stop() -> None:
    scanner = StopScanner(["END", "<|a_much_longer_stop|>"])
    assert (scanner.feed("some text E"), scanner.held) == ("some text ", "E")
    assert scanner.feed("!") == "E!"


def test_llama_cpp_holds_all_text_during_a_prefix() -> None:
    scanner = StopScanner("\nUser:")
    assert (scanner.feed("A long line.\nUs"), scanner.held) == ("A long line.", "\nUs")


def test_ollama_holds_all_pending_pieces() -> None:
    scanner = StopScanner("</answer>")
    assert feed_all(scanner, ["well", " then", " <", "b>", " it is"]) == ["well", " then", " ", "<b>", " it is"]


def test_mlx_engine_holds_its_whole_buffer() -> None:
    scanner = StopScanner("STOP")
    assert feed_all(scanner, ["one S", " two ST", " three"]) == ["one ", "S two ", "ST three"]


def test_sglang_holds_a_whole_step() -> None:
    scanner = StopScanner("STOP")
    assert (scanner.feed("a step of several tokens S"), scanner.held) == ("a step of several tokens ", "S")


def test_exo_leaks_the_first_tokens_of_a_stop() -> None:
    scanner = StopScanner("<|im_end|>")
    assert feed_all(scanner, ["ok", "<|", "im_end", "|>"]) == ["ok", "", "", ""]
    assert scanner.match == StopMatch("<|im_end|>", 2)


def test_dynamo_14378_leaks_every_fragment_but_the_last() -> None:
    scanner = StopScanner(" zeta eta theta")
    assert feed_all(scanner, ["delta", " zeta", " eta", " theta"]) == ["delta", "", "", ""]
    assert scanner.match == StopMatch(" zeta eta theta", 5)


def test_rapid_mlx_leaks_an_unheld_stop() -> None:
    """Rapid-MLX has three matchers, which give different answers. stopscan gives the same answer for streamed text and
    for whole text."""
    deltas = ["The answer", " is 42\n", "\nQuestion", ": next"]
    stream = scan(deltas, "\n\nQuestion:")
    assert list(stream) == ["The answer", " is 42"]
    assert truncate("".join(deltas), "\n\nQuestion:") == ("The answer is 42", stream.match)


def test_transformers_never_trims_the_stop() -> None:
    assert truncate("yes. END", "END") == ("yes. ", StopMatch("END", 5))


def test_transformers_streamers_know_nothing_of_stops() -> None:
    assert list(scan(["yes. ", "EN", "D"], "END")) == ["yes. "]


def test_mlx_lm_drops_held_text_at_eos() -> None:
    scanner = StopScanner("###")
    assert (scanner.feed("a ##"), scanner.flush()) == ("a ", "##")


def test_mlx_lm_git_rereads_held_text() -> None:
    """mlx-lm of August 2026 returns `## Tit# Title` for the text `## Title`, if `###` is a stop."""
    assert list(scan(["##", " Title"], "###")) == ["## Title"]


def test_llama_cpp_loses_held_text_at_the_token_limit() -> None:
    assert "".join(scan(["ends in\n", "Use"], "\nUser:")) == "ends in\nUse"


def test_mlx_engine_loses_the_held_tail_at_the_limit() -> None:
    def limited() -> Iterable[str]:
        yield from ["ends in ", "ST"]

    stream = scan(limited(), "STOP")
    assert (list(stream), stream.held, stream.match) == (["ends in ", "ST"], "", None)


def test_an_aborted_stream_keeps_its_held_tail() -> None:
    """Held text must not be lost when a stream ends, even if the source raises an error."""

    def aborted() -> Iterable[str]:
        yield "ends in ST"
        raise ConnectionError("gone")

    stream = scan(aborted(), "STOP")
    assert next(stream) == "ends in "
    with pytest.raises(ConnectionError, match="gone"):
        next(stream)
    assert stream.held == "ST"


@pytest.mark.parametrize("deltas", [["END"], ["E", "N", "D"], ["EN", "D"], ["E", "ND!"], ["xE", "NDx"]])
def test_mlx_lm_misses_a_stop_in_other_tokens(deltas: list[str]) -> None:
    """mlx-lm compares token ids. It ends the generation only at the ids that `encode(stop)` returns, although other
    tokens may spell the same text."""
    scanner = StopScanner("END")
    out = "".join(feed_all(scanner, [*deltas, " and so on"]))
    assert (out, scanner.match) == ("x" * deltas[0].count("x"), StopMatch("END", deltas[0].count("x")))


def test_sglang_misses_a_stop_longer_than_its_tail() -> None:
    scanner = StopScanner("stop here")
    assert feed_all(scanner, ["go ", *"stop here", " gone"]) == ["go ", *[""] * 10]
    assert scanner.match == StopMatch("stop here", 3)


def test_tgi_misses_a_stop_within_a_token() -> None:
    scanner = StopScanner("\n\n")
    assert (scanner.feed("one.\n\nTwo"), scanner.unused) == ("one.", "Two")
    assert scanner.match == StopMatch("\n\n", 4)


def test_smg_1447_1524_single_token_stops_report_integers() -> None:
    scanner = StopScanner(["6", "hello world"])
    assert feed_all(scanner, ["1 2 3 ", "hello", " world", " 4 5"]) == ["1 2 3 ", "", "", ""]
    assert scanner.match is not None
    assert scanner.match.sequence == "hello world"


def test_dynamo_min_tokens_misses_a_straddling_stop() -> None:
    scanner = StopScanner("STOP")
    assert (scanner.feed("STOP, ST", armed=False), scanner.feed("OP")) == ("STOP, ", "")
    assert scanner.match == StopMatch("STOP", 6)


def test_several_tokens_in_one_step_of_speculative_decoding() -> None:
    scanner = StopScanner("</s>")
    assert (scanner.feed("yes </s> no </s>"), scanner.unused) == ("yes ", " no </s>")
    assert scanner.match == StopMatch("</s>", 4)


@pytest.mark.parametrize("stop", [["b", "ab"], ["ab", "b"]])
def test_vllm_breaks_ties_in_list_order(stop: list[str]) -> None:
    assert truncate("xab", stop) == ("x", StopMatch("ab", 1))


@pytest.mark.parametrize("stop", [["re", "he"], ["he", "re"]])
def test_exo_ollama_sglang_dynamo_14848_list_order(stop: list[str]) -> None:
    assert truncate("there", stop) == ("t", StopMatch("he", 1))


@pytest.mark.parametrize("deltas", [["abc"], ["a", "b", "c"], ["ab", "c"], ["a", "bc"]])
def test_llama_cpp_and_mlx_engine_depend_on_chunks(deltas: list[str]) -> None:
    """llama.cpp and mlx-engine take the match that begins first in the text so far. With the stops `abc` and `b`, this
    is `abc` if the text comes in one delta, and `b` if it comes in three."""
    stream = scan(deltas, ["abc", "b"])
    assert (list(stream), stream.match) == (["a"], StopMatch("b", 1))


def test_ollama_drops_the_match() -> None:
    scanner = StopScanner(["</s>", "[DONE]"])
    feed_all(scanner, ["fine", "[DO", "NE]"])
    assert scanner.match == StopMatch("[DONE]", 4)


def test_no_project_reports_where_the_match_lies() -> None:
    text = "日本語 🦀 END"
    match = StopSet("END").find(text)
    assert match is not None
    assert (match.offset, match.end, text[match.offset : match.end]) == (6, 9, "END")


def test_vllm_53066_stop_fires_in_prompted_reasoning() -> None:
    scanner = StopScanner(StopSet("Question:", protect=THINK), start_protected=True)
    deltas = ["The user's ", "Question:", " is", "</think>", "42\n", "Question:"]
    assert feed_all(scanner, deltas) == [*deltas[:5], ""]
    assert scanner.match == StopMatch("Question:", 34)


def test_vllm_38499_stop_fires_inside_reasoning() -> None:
    stops = StopSet(["9.8"], protect=THINK)
    text = "<think>9.11 or 9.8?</think>It is 9.8"
    assert stops.truncate(text) == ("<think>9.11 or 9.8?</think>It is ", StopMatch("9.8", 33))


def test_vllm_51641_splits_the_closing_marker() -> None:
    """vLLM withholds a part of `</think>`, so its reasoning parser does not get the marker in one piece."""
    scanner = StopScanner(StopSet("a stop of many characters", protect=THINK))
    deltas = ["<think>", "hm", "</think>", "yes"]
    assert feed_all(scanner, deltas) == deltas


def test_rapid_mlx_469_stop_inside_thinking() -> None:
    stream = scan(["<think>a\n", "\nb</think>", "c\n", "\nd"], StopSet("\n\n", protect=THINK))
    assert list(stream) == ["<think>a\n", "\nb</think>", "c"]
    assert stream.match == StopMatch("\n\n", 20)


@pytest.mark.parametrize("stop", ["🦁", "é", "字", "e\u0301", "\u200d👧"])
def test_multi_byte_text_is_cut_between_characters(stop: str) -> None:
    text = "é🦀字è漢e\u0300👩\u200d👦" * 3 + stop + "🦀"
    cut = text.index(stop)
    for size in (1, 2, 3, len(text)):
        scanner = StopScanner(stop)
        out = "".join(feed_all(scanner, [text[i : i + size] for i in range(0, len(text), size)]))
        assert (out, scanner.match) == (text[:cut], StopMatch(stop, cut))
