from __future__ import annotations

from copy import copy
from typing import Any

from transformers import TextGenerationPipeline

from stopscan.transformers._options import OPTIONS, Options
from stopscan.transformers._row import row_of
from stopscan.transformers._stops import Stops


def cut(pipeline: Any, /) -> Any:
    """Returns the text-generation ``pipeline`` with exact stops. The given pipeline stays as it is.

    Calls take ``stop`` and the options of ``Stops``, too. ``generated_text`` ends where the text ends.

    >>> cut(pipeline)("Once upon a time", stop=["END"], max_new_tokens=50)
    [{'generated_text': 'Once upon a time there was a'}]
    """
    if not isinstance(pipeline, TextGenerationPipeline):
        raise TypeError(f"expected a pipeline for text-generation, got {type(pipeline).__name__}")
    exact: Any = object.__new__(type("ExactPipeline", (_Cut, type(pipeline)), {}))
    exact.__dict__.update(pipeline.__dict__)
    return exact


class _Cut:
    tokenizer: Any
    model: Any

    def _sanitize_parameters(self, stop: Any = (), **given: Any) -> tuple[dict[str, Any], ...]:
        own = {name: given.pop(name) for name in OPTIONS if name in given and name != "skip_special_tokens"}
        preprocess, forward, postprocess = super()._sanitize_parameters(**given)  # type: ignore[misc]
        skip = given.get("skip_special_tokens") in (None, True) and not getattr(
            self.tokenizer, "response_template", None
        )
        eos = self.model.generation_config.eos_token_id
        options = Options(self.tokenizer, stop, **{"eos_token_ids": eos, "skip_special_tokens": skip, **own})
        return preprocess, {**forward, "stop_options": options}, {**postprocess, "stop_options": options}

    def _forward(self, model_inputs: Any, *, stop_options: Options, **given: Any) -> Any:
        criteria = [*given.pop("stopping_criteria", ()), Stops.of(stop_options)]
        return super()._forward(model_inputs, stopping_criteria=criteria, **given)  # type: ignore[misc]

    def postprocess(self, model_outputs: Any, *, stop_options: Options, **given: Any) -> Any:
        (sequences,) = model_outputs["generated_sequence"]
        prompts = model_outputs["input_ids"]
        length = 0 if prompts is None else prompts.shape[-1]
        records = []
        for index, sequence in enumerate(sequences.tolist()):
            row = row_of(stop_options, sequence[:length])
            row.feed(sequence[length:])
            row.close("length")
            # What decodes for this row has its text ready.
            one = copy(self)
            one.tokenizer = _Decoded(self.tokenizer, row.text)
            outputs = {
                name: value[:, index : index + 1]
                if name not in ("input_ids", "prompt_text") and hasattr(value, "shape")
                else value
                for name, value in model_outputs.items()
            }
            records += super(_Cut, one).postprocess(outputs, **given)  # type: ignore[misc]
        return records


class _Decoded:
    """A tokenizer that decodes a row's tokens, which it is asked for first, to the text that is known already."""

    def __init__(self, tokenizer: Any, text: str) -> None:
        self._tokenizer, self._texts = tokenizer, [text]

    def decode(self, *args: Any, **options: Any) -> str:
        text: str = self._texts.pop() if self._texts else self._tokenizer.decode(*args, **options)
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)
