from __future__ import annotations

import json
from typing import Any


def choices_asked(stream: Any) -> int:
    """Returns how many choices the request of an ``openai`` stream asks for, also under LiteLLM's wrapper; 1 if there
    is no request to be seen.

    A choice may have begun when another has not: only the request tells that there will be two.
    """
    try:
        body = json.loads(getattr(stream, "completion_stream", stream).response.request.content)
        prompt = body.get("prompt")
        prompts = len(prompt) if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list) else 1
        return prompts * (body.get("n") or 1)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # httpx raises RuntimeErrors for what is not there
        return 1
