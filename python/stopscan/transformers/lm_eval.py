"""Exact stops for lm-evaluation-harness: the model ``hf-stopscan``, which otherwise equals the harness's own ``hf``.

Importing this module registers the model. ``python -m stopscan.transformers.lm_eval`` runs the command ``lm_eval``,
which then also knows ``--model hf-stopscan``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.registry import register_model
from lm_eval.models import huggingface

from stopscan.transformers._options import Options
from stopscan.transformers._row import row_of
from stopscan.transformers._stops import Stops

if TYPE_CHECKING:
    from stopscan.engines.untyped import Untyped as EvalModel
else:
    EvalModel = huggingface.HFLM

__all__ = ["ExactHFLM"]


@register_model("hf-stopscan")
class ExactHFLM(EvalModel):
    """lm_eval's ``HFLM`` with exact stops. An answer ends before the stop in ``until`` that the model completes first.

    A stop that is one special token also ends the answer. With ``think_end_token``, no stop fires before that token,
    because lm_eval treats all text before it as reasoning. Raises ``TypeError`` for a tokenizer that ``TokenScanner``
    does not support.

    >>> import stopscan.transformers.lm_eval
    >>> lm_eval.simple_evaluate("hf-stopscan", model_args="pretrained=Qwen/Qwen3-0.6B", tasks=["gsm8k"], batch_size=8)
    """

    _answers: Options | None = None

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> Any:
        """Returns the answer to each request, in the order of the requests."""
        try:
            return super().generate_until(requests, disable_tqdm)  # type: ignore[misc]
        finally:
            self._answers = None

    def _model_generate(self, context: Any, max_length: int, stop: list[str], **generation_kwargs: Any) -> Any:
        stops, options = self._options(stop)
        region = self._thinking()
        criterion = Stops(self.tokenizer, stops, protect=region, start_protected=bool(region), **options)
        if isinstance(self.think_end_token, int):
            region = []  # lm_eval decodes only the ids after `think_end_token`, so the text has no reasoning
        self._answers = Options(self.tokenizer, stops, protect=region, start_protected=bool(region), **options)
        with patch.object(huggingface, "stop_sequences_criteria", lambda *_: [criterion]):
            sequences = super()._model_generate(context, max_length, stop, **generation_kwargs)  # type: ignore[misc]
        # Leave out the decoder's start token: it is not in the answer. This token is often the EOS, which would end the
        # row.
        return sequences[:, 1:] if self.backend == "seq2seq" else sequences

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> Any:
        """Returns the text of ``tokens``. While answers are generated, cuts the text at the stop. Then lm_eval finds
        nothing to cut."""
        if self._answers is None or not skip_special_tokens:
            return super().tok_decode(tokens, skip_special_tokens=skip_special_tokens)  # type: ignore[misc]
        # Leave out the prompt, because lm_eval itself also decodes an answer without its prompt. (SentencePiece then
        # drops the first space of the answer.)
        row = row_of(self._answers, ())
        row.add(row.feed_many(tokens))
        row.end("length")
        return row.text

    def _options(self, until: Iterable[str]) -> tuple[list[str], dict[str, Any]]:
        """Returns the stops that are text, and the options. A special token in ``until`` is not text of the answer. So
        its id becomes a stop token, which the options contain."""
        added = self.tokenizer.added_tokens_decoder.items()
        special = {token.content: token_id for token_id, token in added if token.special}
        ids = [special[stop] for stop in until if stop in special]
        # lm_eval adds the decoded EOS to the stops. If the EOS has no text, this stop is "", and is left out here.
        stops = [stop for stop in until if stop and stop not in special]
        return stops, {"stop_token_ids": ids, "eos_token_ids": self.model.generation_config.eos_token_id}

    def _thinking(self) -> list[tuple[str, str]]:
        """Returns the markers of the reasoning. lm_eval knows only the closing marker. The opening marker is assumed to
        be the same text without "/"."""
        end = self.think_end_token
        if isinstance(end, int):
            end = self.tok_decode([end], skip_special_tokens=False)
        return [(end.replace("/", "", 1), end)] if end else []


if __name__ == "__main__":
    cli_evaluate()
