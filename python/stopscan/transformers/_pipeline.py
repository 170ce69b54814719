"""``cut`` gives text-generation pipelines exact stops."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from transformers import TextGenerationPipeline

from stopscan.finish import Finish
from stopscan.transformers._options import OPTIONS, Options
from stopscan.transformers._stops import Stops


def cut(pipeline: Any, /) -> Any:
    """Returns the text-generation ``pipeline`` with exact stops. The given pipeline stays as it is.

    Calls also take ``stop`` and the options of ``Stops``. ``generated_text`` ends at the stop, ``generated_token_ids``
    ends with the last token of that text, and ``finish`` says why the text ended. A ``streamer`` gets the same text.

    >>> cut(pipeline)("Once upon a time", stop=["END"], max_new_tokens=50)
    [{'generated_text': 'Once upon a time there was a', 'finish': Finish('stop_sequence', 'END', 13)}]
    """
    if not isinstance(pipeline, TextGenerationPipeline):
        raise TypeError(f"expected a pipeline for text-generation, got {type(pipeline).__name__}")
    if isinstance(pipeline, _Cut):
        raise TypeError("this pipeline already has exact stops: pass stop= when you call it")
    exact: Any = object.__new__(type("ExactPipeline", (_Cut, type(pipeline)), {}))
    exact.__dict__.update(pipeline.__dict__)
    return exact


@dataclass(frozen=True)
class _Row:
    text: str
    finish: Finish
    length: int


class _Cut:
    tokenizer: Any

    def _sanitize_parameters(self, stop: Any = (), **given: Any) -> tuple[dict[str, Any], ...]:
        own = {name: given.pop(name) for name in OPTIONS if name in given and name != "skip_special_tokens"}
        streamer = given.pop("streamer", None)
        preprocess, forward, postprocess = super()._sanitize_parameters(**given)  # type: ignore[misc]
        # If the tokenizer has a response template, transformers parses the text with it. Then the special tokens must
        # stay in the text.
        template = getattr(self.tokenizer, "response_template", None)
        skip = given.get("skip_special_tokens") in (None, True) and not template
        options = Options(self.tokenizer, stop, **{"skip_special_tokens": skip, **own})
        return preprocess, {**forward, "stop_options": options, "streamer": streamer}, postprocess

    def _forward(self, model_inputs: Any, *, stop_options: Options, streamer: Any, **given: Any) -> Any:
        stops = Stops.of(stop_options, streamer)
        given["stopping_criteria"] = [*(given.get("stopping_criteria") or ()), stops]
        if streamer is not None:  # pass `stops` as the streamer only if needed, because beam search refuses streamers
            given["streamer"] = stops
        try:
            outputs = super()._forward(model_inputs, **given)  # type: ignore[misc]
            sequences = outputs["generated_sequence"]
            stops.trim(sequences.flatten(0, 1))
        except BaseException:
            stops.close()
            raise
        rows = [_Row(*row) for row in zip(stops.texts, stops.finishes, stops.lengths, strict=True)]
        count = sequences.shape[1]  # the number of answers to each prompt
        return {**outputs, "rows": [rows[start : start + count] for start in range(0, len(rows), count)]}

    def postprocess(self, model_outputs: Any, **given: Any) -> Any:
        outputs = dict(model_outputs)
        prompts, records = outputs["input_ids"], []
        prompt_length = 0 if prompts is None else prompts.shape[-1]
        rows = outputs.pop("rows")
        # `rows` has the rows of one prompt. If the pipeline has not split a batch, `rows` is a list with one item: the
        # list of the rows.
        for index, row in enumerate(rows[0] if isinstance(rows[0], list) else rows):
            one_row = {
                name: value[:, index : index + 1]
                if name not in ("input_ids", "prompt_text") and hasattr(value, "shape")
                else value
                for name, value in outputs.items()
            }
            one_row["generated_sequence"] = one_row["generated_sequence"][..., : prompt_length + row.length]
            # `super().postprocess` decodes again, and would bring back text after the stop. So give this copy of the
            # pipeline a tokenizer whose `decode` returns the row's text, which ends at the stop.
            one = copy(self)
            one.tokenizer = _Decoded(self.tokenizer, row.text)
            (record,) = super(_Cut, one).postprocess(one_row, **given)  # type: ignore[misc]
            records.append({**record, "finish": row.finish})
        return records


class _Decoded:
    """A tokenizer whose first ``decode`` returns ``text``, because the pipeline first decodes the tokens of the row.
    Later calls decode as the pipeline's tokenizer does."""

    def __init__(self, tokenizer: Any, text: str) -> None:
        self._tokenizer, self._texts = tokenizer, [text]

    def decode(self, *args: Any, **options: Any) -> str:
        text: str = self._texts.pop() if self._texts else self._tokenizer.decode(*args, **options)
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)
