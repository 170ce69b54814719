"""The vocabulary object: made once for each tokenizer, kept as long as the tokenizer lives, and shared."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import weakref
from functools import partial
from typing import Any

import pytest
from families import (
    load,
    manual,
    name,
    prefixed_bytes,
    sentencepiece,
    small_bytes,
    small_fallback,
    tekken,
    trained_bytes,
)
from tokenizers import Tokenizer, decoders, models
from vocabularies import data, staged
from whole import emitted

from stopscan.tokens import TokenScanner, Vocabulary


def test_a_tokenizer_has_one() -> None:
    tokenizer, token_ids = staged("a", "b")
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.native
    assert Vocabulary(tokenizer) is vocabulary
    assert copy.copy(vocabulary) is copy.deepcopy(vocabulary) is vocabulary
    assert emitted(TokenScanner(vocabulary), token_ids) == emitted(TokenScanner(tokenizer), token_ids) == "ab"


def test_it_dies_with_its_tokenizer() -> None:
    tokenizer = staged("a", "b")[0]
    vocabulary = Vocabulary(tokenizer)
    references = reference(tokenizer), weakref.ref(vocabulary)
    del tokenizer
    gc.collect()
    assert references[0]() is None
    assert emitted(TokenScanner(vocabulary), [0, 1]) == "ab"
    del vocabulary
    gc.collect()
    assert references[1]() is None


def test_vocabulary_that_is_not_native_frees_its_tokenizer() -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, "a"))
    vocabulary = Vocabulary(tokenizer)
    assert not vocabulary.native
    tokenizer_of_it = reference(tokenizer)
    del tokenizer
    assert emitted(TokenScanner(vocabulary), [0, 0]) == "a a"
    del vocabulary
    gc.collect()
    assert tokenizer_of_it() is None


def reference(tokenizer: Tokenizer) -> Any:
    try:
        return weakref.ref(tokenizer)
    except TypeError:
        pytest.skip("tokenizers before 0.23 gives no weak references to its tokenizers")


def test_a_tokenizer_that_was_changed_has_another() -> None:
    tokenizer, token_ids = staged("a", "b")
    before = Vocabulary(tokenizer)
    tokenizer.add_tokens(["<new>"])
    assert emitted(TokenScanner(tokenizer), [*token_ids, 2]) == "ab<new>"
    tokenizer.decoder = decoders.WordPiece()
    assert not Vocabulary(tokenizer).native
    assert emitted(TokenScanner(tokenizer), [*token_ids, 2]) == "a b <new>"
    assert emitted(TokenScanner(before), token_ids) == "ab"


def test_what_carries_a_tokenizer() -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    vocabulary = load(small_bytes)
    carrier = transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary.tokenizer)
    token_ids = vocabulary.encode("the story")

    class Wrapper:  # like mlx-lm's wrapper of a tokenizer
        def __getattr__(self, name: str) -> Any:
            return getattr(carrier, name)

    class Bare:  # it has no `decode`
        backend_tokenizer = vocabulary.tokenizer

    for tokenizer in (carrier, Wrapper(), Wrapper(), Bare()):
        assert Vocabulary(tokenizer).native
        assert emitted(TokenScanner(tokenizer), token_ids) == "the story"


def test_tokenizers_of_mistral_common_and_what_carries_them() -> None:
    mistral = pytest.importorskip("mistral_common.tokens.tokenizers.mistral", reason="mistral-common is not installed")
    path = data("mistral_common", "data/mistral_instruct_tokenizer_240323.model.v3")
    carrier = mistral.MistralTokenizer.from_file(path)
    own = carrier.instruct_tokenizer.tokenizer
    assert Vocabulary(carrier) is Vocabulary(own)
    assert Vocabulary(carrier).native

    class Backend:  # like transformers' MistralCommonBackend
        tokenizer = carrier

    class Engine:  # like vLLM's wrapper
        tokenizer = own

    assert Vocabulary(Backend()) is Vocabulary(Engine()) is Vocabulary(own)


def test_encoding_is_found_under_any_attribute_name() -> None:
    """Kimi K2's `TikTokenTokenizer` is a Python class with a `tiktoken.Encoding` in `.model`. Before a fix, such a
    tokenizer raised a TypeError, which ended exo for all its users."""
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"EN": 256, b"D ": 257}
    encoding = tiktoken.Encoding("kimi", pat_str=r".", mergeable_ranks=ranks, special_tokens={"<|im_end|>": 258})

    class TikTokenTokenizer:
        all_special_ids = (258,)

        def __init__(self) -> None:
            self.model = encoding

        def decode(self, token_ids: Any, **options: Any) -> str:
            return str(self.model.decode([token_ids] if isinstance(token_ids, int) else token_ids))

    class Upper(TikTokenTokenizer):
        def decode(self, token_ids: Any, **options: Any) -> str:
            return super().decode(token_ids).upper()

    ids = [*"ä ".encode(), 256, 257, 258]
    assert Vocabulary(TikTokenTokenizer()).native
    assert emitted(TokenScanner(TikTokenTokenizer(), "D"), ids) == "ä EN"
    assert not Vocabulary(Upper()).native
    assert emitted(TokenScanner(Upper(), "D"), ids) == "Ä EN"
    assert emitted(TokenScanner(Upper(), skip_special_tokens=False), ids) == "Ä END <|IM_END|>"


@pytest.mark.parametrize("skips", [False, True])
def test_any_object_that_decodes_is_read(skips: bool) -> None:
    class Spelled:
        __slots__ = ()

        def decode(self, token_ids: Any, skip_special_tokens: bool = True) -> str:
            return "".join(
                "" if skip_special_tokens and each == 0 else "<s>" if each == 0 else chr(each) for each in token_ids
            )

    scanner = TokenScanner(Spelled(), "END", skip_special_tokens=skips, unknown_ids="count")
    assert emitted(scanner, [0, *map(ord, "ä 2"), 2**31, *map(ord, " END x")]) == ("" if skips else "<s>") + "ä 2 "
    assert scanner.match is not None
    assert not Vocabulary(Spelled()).native


@pytest.mark.parametrize("tokenizer", [None, "gpt2", {}, object(), b"", Vocabulary])
def test_what_carries_no_tokenizer_is_named(tokenizer: Any) -> None:
    with pytest.raises(TypeError, match=f"tokenizer: .* got {type(tokenizer).__name__}"):
        Vocabulary(tokenizer)
    with pytest.raises(TypeError, match=f"tokenizer: .* got {type(tokenizer).__name__}"):
        TokenScanner(tokenizer, "END")


def test_a_description_that_does_not_hold_is_not_believed() -> None:
    """The wrapped tokenizer is described as byte-level, but the wrapper's `decode` differs."""

    class Lying:
        backend_tokenizer = trained_bytes(add_prefix_space=False)

        def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
            text = self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)
            return text.replace("e", "3")

    tokenizer = Lying()
    assert not Vocabulary(tokenizer).native
    token_ids = tokenizer.backend_tokenizer.encode("the end").ids
    assert emitted(TokenScanner(tokenizer), token_ids) == "th3 3nd"


MAKES = [manual, small_bytes, prefixed_bytes, small_fallback, partial(tekken, "tekken_240718.json")]
MAKES += [partial(sentencepiece, "tokenizer.model.v1")]


@pytest.mark.parametrize("make", MAKES, ids=name)
def test_a_pickle_needs_no_tokenizer(make: Any) -> None:
    vocabulary = load(make)
    text = "The END of naïve 你好 🚀"
    token_ids = [*vocabulary.special[:2], *vocabulary.encode(text)]
    native = Vocabulary(vocabulary.tokenizer)
    assert pickle.loads(pickle.dumps(native)) is native  # this process has the vocabulary already
    program = "import pickle, sys; s = pickle.load(sys.stdin.buffer); t = pickle.load(sys.stdin.buffer)\n"
    program += "assert s.__reduce__()[1][1][0] is t.__reduce__()[1][1][0]\n"
    program += "ids = pickle.load(sys.stdin.buffer)\n"
    program += "for scanner in (s, t): sys.stdout.buffer.write((scanner.feed_many(ids) + scanner.flush()).encode())\n"
    program += "assert not {'tokenizers', 'mistral_common', 'tiktoken'} & {*sys.modules}\n"
    scanner, skipping = TokenScanner(native, skip_special_tokens=False), TokenScanner(native)
    pickles = b"".join(map(pickle.dumps, (scanner, skipping, token_ids)))
    done = subprocess.run([sys.executable, "-c", program], input=pickles, capture_output=True, check=False)
    assert done.stderr.decode() == ""
    assert done.stdout.decode() == emitted(scanner, token_ids) + emitted(skipping, token_ids)


def test_threads_share_it() -> None:
    vocabulary = load(manual)
    token_ids = vocabulary.encode("The END of the story, 你好世界, naïve café. " * 50)
    native = Vocabulary(vocabulary.tokenizer)
    texts: list[str] = []

    def read() -> None:
        texts.append(emitted(TokenScanner(native, ["<|stop|>"]), token_ids))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [vocabulary.decode(token_ids, True)] * 8


def test_scanner_used_by_its_tokenizer_is_an_error() -> None:
    """The scanner is locked while it calls the tokenizer's own `decode`. If this `decode` feeds the same scanner, it
    must get an error."""

    class Reentrant:
        backend_tokenizer = trained_bytes(add_prefix_space=False)
        scanner: TokenScanner | None = None

        def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
            if self.scanner is not None:
                self.scanner.feed(token_ids[0])
            return "x" * len(token_ids)

    tokenizer = Reentrant()
    scanner = TokenScanner(tokenizer)
    tokenizer.scanner = scanner
    with pytest.raises(RuntimeError, match="in use"):
        scanner.feed(5)
    tokenizer.scanner = None
    assert scanner.feed(5) == "x"
    assert scanner.tokens_seen == 1
