"""Compares ``hf-stopscan`` with the ``hf`` of lm-evaluation-harness. The model recites fixed texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed; ci/transformers-env makes its environment")
pytest.importorskip("lm_eval", reason="lm_eval is not installed; ci/transformers-env makes its environment")

import torch
from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.models import huggingface
from lm_eval.tasks import TaskManager
from recital import recite
from transformers import BartConfig, BartForConditionalGeneration

from stopscan.transformers.lm_eval import ExactHFLM
from stopscan_conformance.reciter import HARMONY, SCRIPTS, THINKING, Reciter

MODELS = ["hf", "hf-stopscan"]
NAMES = [name for name in SCRIPTS if name != "harmony"]
OWN = Reciter(
    {
        "spelled": ["One", " <s", "to", "p-h", "er", "e>", " two", " three", " four"],
        "nested": ["x", "abcd", " y"],
        "special": ["One", "<|end|>", " two", " three"],
        "long": [f" {number}" for number in range(20)],
        "thought": ["<think>", "Is", "\n\n", "it?", "</think>", "5", "\n\n", "6", " 7"],
        "opened": ["Is", "\n\n", "it?", "</think>", "5", "\n\n", "6", " 7"],
        "harmonic": ["Is", "\n\n", "it?", "<|message|>", "5", "\n\n", "6", " 7"],
    },
    added_tokens=[*THINKING, "<stop-here>"],
    special_tokens=HARMONY,
)


def write_task(folder: Path, names: Sequence[str], answers: Sequence[str], until: Any) -> None:
    """Writes the task "recital" for lm_eval: a YAML file and a file of documents."""
    documents = [{"prompt": f"[{name}]", "answer": text} for name, text in zip(names, answers, strict=True)]
    file = folder / "documents.json"
    file.write_text("\n".join(map(json.dumps, documents)))
    description = {
        "task": "recital",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}, "cache_dir": str(folder / "cache")},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": until, "max_gen_toks": 60},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    (folder / "recital.yaml").write_text(json.dumps(description))  # JSON is YAML


def evaluated(lm: Any, folder: Path) -> tuple[list[str], float]:
    """The answers of ``lm`` to the task in ``folder``, and the share of correct answers."""
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    result = simple_evaluate(lm, tasks=["recital"], task_manager=manager, bootstrap_iters=0)
    samples = sorted(result["samples"]["recital"], key=lambda sample: sample["doc_id"])
    return [sample["resps"][0][0] for sample in samples], result["results"]["recital"]["exact_match,none"]


def load(name: str, path: Path, **options: Any) -> Any:
    return get_model(name)(pretrained=str(path), device="cpu", dtype="float32", batch_size=32, **options)


@pytest.fixture(scope="module")
def lms(checkpoint: Path) -> dict[str, Any]:
    return {name: load(name, checkpoint) for name in MODELS}


@pytest.fixture(scope="module")
def recital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return OWN.write(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def own(recital: Path) -> dict[str, Any]:
    return {name: load(name, recital) for name in MODELS}


def generated(lm: Any, until: Any, *names: str, **generation: Any) -> tuple[list[str], int]:
    """Sends a prompt for each of ``names``. The prompt is the name in square brackets. Returns the answers and the
    number of model steps."""
    generation = {"until": until, "max_gen_toks": 60, **generation}
    requests = [Instance("generate_until", {}, (f"[{name}]", generation), idx) for idx, name in enumerate(names)]
    steps: list[int] = []
    hook = lm.model.register_forward_pre_hook(lambda *_: steps.append(1))
    try:
        return lm.generate_until(requests, disable_tqdm=True), len(steps)
    finally:
        hook.remove()


@pytest.mark.parametrize(
    "stop",
    [["END"], ["hello world", "6"], ["\n", "."], "aab", ["<|end_of_document|>", "!"], ["</think>"], ["never"], []],
    ids=str,
)
def test_task_answers_equal_those_of_lm_eval(lms: dict[str, Any], tmp_path: Path, stop: Any) -> None:
    expected = [recite(SCRIPTS[name], [stop] if isinstance(stop, str) else stop).text for name in NAMES]
    write_task(tmp_path, NAMES, expected, stop)
    assert evaluated(lms["hf-stopscan"], tmp_path) == (expected, 1)
    assert evaluated(lms["hf"], tmp_path) == (expected, 1)


def test_stop_of_many_tokens_ends_the_answer(own: dict[str, Any]) -> None:
    """lm_eval (``hf``) searches for a stop only in the last tokens of the text. It searches two tokens more than its
    own encoding of the stop has. Here the model spells the stop in more tokens than that, so ``hf`` does not end the
    answer early."""
    assert generated(own["hf-stopscan"], ["<stop-here>"], "spelled") == (["One "], 6)
    assert generated(own["hf"], ["<stop-here>"], "spelled") == (["One "], 10)


def test_special_token_ends_its_row_alone(own: dict[str, Any]) -> None:
    """A stop may be a special token. With ``hf-stopscan``, it ends its row, and the text ends before it. Plain lm_eval
    (``hf``) ends a batch only when all rows have this token. Then it decodes the rows without special tokens, so it
    does not find the stop in their text, and does not cut the text."""
    long = OWN.text("long")
    assert generated(own["hf-stopscan"], ["<|end|>"], "special", "long")[0] == ["One", long]
    assert generated(own["hf"], ["<|end|>"], "special", "long")[0] == ["One two three", long]
    assert generated(own["hf"], ["<|end|>"], "special")[0] == ["One"]


def test_no_stop_in_a_special_token_name(own: dict[str, Any]) -> None:
    assert generated(own["hf-stopscan"], ["nd"], "special") == (["One two three"], 5)
    assert generated(own["hf"], ["nd"], "special") == (["One"], 2)


def test_batch_ends_when_each_row_has_stopped(own: dict[str, Any]) -> None:
    """With ``hf-stopscan``, each row ends at its first stop. With ``hf``, a batch goes on until all rows contain the
    same stop."""
    until, texts = [" 4", "two"], [" 0 1 2 3", "One <stop-here> "]
    assert generated(own["hf-stopscan"], until, "long", "spelled") == (texts, 7)
    assert generated(own["hf"], until, "long", "spelled") == (texts, 21)


def test_an_empty_stop_is_none(own: dict[str, Any]) -> None:
    """lm_eval adds the text of the EOS to the stops. If the EOS has no text, that stop is "", and ``hf-stopscan``
    ignores it."""
    assert generated(own["hf-stopscan"], ["", "b"], "nested")[0] == ["xa"]


@pytest.mark.parametrize("until", [["abc", "b"], ["b", "abc"]], ids=str)
def test_the_order_of_stops_says_nothing(own: dict[str, Any], until: list[str]) -> None:
    assert generated(own["hf-stopscan"], until, "nested")[0] == ["xa"]
    # lm_eval cuts the text at the first stop of the list, then what is left at the next stop, and so on. A cut at "b"
    # leaves no "abc" to cut at, so the order of the list changes the answer.
    assert generated(own["hf"], until, "nested")[0] == ["x" if until[0] == "abc" else "xa"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("thought", "</think>"),
        ("thought", OWN.token_id("thought", "</think>")),
        ("opened", "</think>"),
        ("harmonic", OWN.token_id("harmonic", "<|message|>")),
    ],
)
def test_no_stop_counts_in_thoughts(recital: Path, name: str, end: str | int) -> None:
    thinking = {model: load(model, recital, think_end_token=end) for model in MODELS}
    steps = len(OWN.token_ids(name)) - 2
    assert generated(thinking["hf-stopscan"], ["\n\n"], name) == (["5"], steps)
    # Plain lm_eval finds the stop in the reasoning, so its answer is only the beginning of the reasoning.
    assert generated(thinking["hf"], ["\n\n"], name)[0] == [OWN.text(name).split("\n\n")[0]]
    # With hf-stopscan, no stop fires before the reasoning ends. An answer without reasoning is generated to its end,
    # and only then cut at the stop.
    (text,), steps = generated(thinking["hf-stopscan"], [" 4"], "long")
    assert text.strip() == "0 1 2 3"
    assert steps == len(OWN.token_ids("long")) + 1


def test_limits_beams_and_samples(own: dict[str, Any]) -> None:
    lm = own["hf-stopscan"]
    assert generated(lm, ["never"], "spelled", max_gen_toks=3) == (["One <sto"], 3)
    cut = "One <stop-here> two t"
    assert generated(lm, ["hree"], "spelled", num_beams=3)[0] == [cut]
    assert generated(lm, ["hree"], "spelled", do_sample=True, temperature=1.0) == ([cut], 8)


def test_encoder_decoder_models(own: dict[str, Any]) -> None:
    tokenizer = own["hf"].tokenizer
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=128,
        bos_token_id=OWN.eos_token_id, eos_token_id=OWN.eos_token_id, pad_token_id=OWN.eos_token_id,
        decoder_start_token_id=OWN.eos_token_id, forced_eos_token_id=None,
    )  # fmt: skip
    model = BartForConditionalGeneration(config).eval()
    answers = {}
    for name in MODELS:
        lm = get_model(name)(pretrained=model, tokenizer=tokenizer, backend="seq2seq", batch_size=32)
        torch.manual_seed(0)
        answers[name], steps = generated(
            lm, list("0123456789"), "long", "nested", "special", "spelled", do_sample=True, temperature=1.0
        )
    assert answers["hf-stopscan"] == answers["hf"]
    assert any(answers["hf"])
    assert steps < 60


def test_decoding_is_lm_evals_once_the_answers_are_there(own: dict[str, Any]) -> None:
    lm, criteria = own["hf-stopscan"], huggingface.stop_sequences_criteria
    assert isinstance(lm, ExactHFLM)
    generated(lm, ["b"], "nested")
    assert lm.tok_decode(OWN.token_ids("nested")) == OWN.text("nested")
    assert huggingface.stop_sequences_criteria is criteria
    # stopscan replaces functions of lm_eval during a generation. It must restore them even if the generation raises.
    with pytest.raises(ValueError, match="no_such_option"):
        generated(lm, ["b"], "nested", no_such_option=1)
    assert lm.tok_decode(OWN.token_ids("nested")) == OWN.text("nested")
    assert huggingface.stop_sequences_criteria is criteria


def test_the_command_takes_lm_evals_arguments(recital: Path, tmp_path: Path) -> None:
    write_task(tmp_path, ["spelled", "long"], ["One ", OWN.text("long")], ["<stop-here>"])
    command = [
        *(sys.executable, "-m", "stopscan.transformers.lm_eval", "run", "--model", "hf-stopscan", "--device", "cpu"),
        *("--model_args", f"pretrained={recital},dtype=float32", "--tasks", "recital", "--include_path", str(tmp_path)),
        *("--output_path", str(tmp_path / "results")),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "hf-stopscan" in run.stdout
    (results,) = (tmp_path / "results").rglob("*.json")
    assert json.loads(results.read_text())["results"]["recital"]["exact_match,none"] == 1
