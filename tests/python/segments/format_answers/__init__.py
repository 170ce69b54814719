"""An answer in every form, as the model's template or its parsers' tests write it, and the parts that it has.

The paths are those of vLLM's repository, where no other is named.
"""

from __future__ import annotations

from format_answers import special_tokens, tags
from format_answers.answer import DSML, GLM, INVOKE, TIME, WEATHER, XML, Answer

ANSWERS = [*tags.ANSWERS, *special_tokens.ANSWERS]

__all__ = ["ANSWERS", "DSML", "GLM", "INVOKE", "TIME", "WEATHER", "XML", "Answer"]
