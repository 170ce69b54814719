"""The examples of docstrings run, and give the results that they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import pkgutil
import types
from collections.abc import Iterator
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import stopscan
from stopscan import engines, finish, regions, segments, tokens

stopscan_clients = pytest.importorskip("stopscan_clients", reason="stopscan-clients is not installed")

# The examples of these modules are not run, because they need a downloaded model, an engine or a running server. A
# module is one of them if its name contains one of these strings.
ELSEWHERE = ("graph_of", "mlx_lm", "vllm", "sglang", "transformers", "stopscan_conformance.client.Server")


def modules() -> Iterator[types.ModuleType]:
    for root in (stopscan, stopscan_clients):
        yield root
        for module in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
            if not any(name in module.name for name in ("__main__", *ELSEWHERE)):
                try:
                    yield importlib.import_module(module.name)
                except ModuleNotFoundError as missing:
                    if (missing.name or "").startswith("stopscan"):
                        raise  # other modules may be missing: some environments lack tokenizer libraries


def names() -> dict[str, Any]:
    """The names that the examples use without defining them, such as the public names and a tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["The answer END."], trainer)
    token_ids = tokenizer.encode("The answer END.").ids
    public = {name: getattr(module, name) for module in (engines, stopscan, finish, regions, segments, tokens)
              for name in module.__all__}  # fmt: skip
    return public | {
        "tokenizer": tokenizer,
        "prompt": "<|im_start|>assistant\n<think>\n",
        "prompt_ids": [],
        "generate": lambda prompt: iter(token_ids),
        "request_body": {"stop": ["END"]},
        "defaults": engines.Defaults(),
        "limit": 20,
        "send": lambda text: None,
        "row": tokens.TokenScanner(tokenizer, ["END"]),
        "token_id": token_ids[0],
    }


class Checker(doctest.OutputChecker):
    """Accepts any output of an example that shows no output."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not want or super().check_output(want, got, optionflags)


def is_async(example: doctest.DocTest) -> bool:
    """Whether an example uses `await`, `async for` or `async with`. doctest cannot run such an example."""
    return any(
        isinstance(node, (ast.AsyncFor, ast.AsyncWith, ast.Await))
        for part in example.examples
        for node in ast.walk(ast.parse(f"async def main():\n {part.source.replace(chr(10), chr(10) + ' ')}"))
    )


EXAMPLES = {
    example.name: (example, vars(module))
    for module in modules()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__)
    if example.examples and not any(name in example.name for name in ELSEWHERE) and not is_async(example)
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    example, module = EXAMPLES[name]
    example.globs = names() | module
    out = io.StringIO()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.DocTestRunner(Checker(), verbose=False, optionflags=flags).run(example, out=out.write)
    assert not failed, out.getvalue()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 60
