"""Answers in every form (the markers of a model family), each with the segments that must be found in it.

The answers are from models' templates or parsers' tests. The paths in `Answer.source` are in vLLM's repository, unless
the source names another one.
"""

from __future__ import annotations

from format_answers import special_tokens, tags
from format_answers.answer import DSML, GLM, INVOKE, TIME, WEATHER, XML, Answer

ANSWERS = [*tags.ANSWERS, *special_tokens.ANSWERS]

__all__ = ["ANSWERS", "DSML", "GLM", "INVOKE", "TIME", "WEATHER", "XML", "Answer"]
