"""Answers of models, each with the segments that stopscan must find in it. There are answers in every form that
stopscan knows. (A form is the markers of a model family.)

The answers come from the templates of models and from the tests of parsers. A path in `Answer.source` is a path in
vLLM's repository, unless the source names another repository.
"""

from __future__ import annotations

from format_answers import special_tokens, tags
from format_answers.answer import DSML, GLM, INVOKE, TIME, WEATHER, XML, Answer

ANSWERS = [*tags.ANSWERS, *special_tokens.ANSWERS]

__all__ = ["ANSWERS", "DSML", "GLM", "INVOKE", "TIME", "WEATHER", "XML", "Answer"]
