"""Answers of test models, with markers of reasoning and tool calls that an engine without stopscan does not know."""

from __future__ import annotations

import json
from pathlib import Path

from stopscan.segments import FORMATS
from stopscan_conformance.reciter import SCRIPTS, Reciter

# For each format: the tokens of an output in which the stop `END` comes twice, its text before the `END` in the
# reasoning, and its text before the `END` in the answer.
HARMONY = list(map(str, SCRIPTS["harmony"]))
MISTRAL = ["[THINK]", "Is it EN", "D?", "[/THINK]", "It is 5 or 6 EN", "D here"]
FORMS = {
    "harmony": (HARMONY, "<|channel|>analysis<|message|>Is it ", "".join(HARMONY[:-3])),
    "mistral": (MISTRAL, "[THINK]Is it ", "[THINK]Is it END?[/THINK]It is 5 or 6 "),
}
THOUGHT = {"harmony": 6, "mistral": 2}


def write(form: str, path: Path) -> Path:
    """Writes to ``path`` a small model. It answers the prompt ``[said]`` in the format ``form``, and its chat template
    contains the markers of this format."""
    Reciter({"said": FORMS[form][0]}, added_tokens=()).write(path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    markers = sorted({marker for edges in FORMATS[form].values() for marker in edges})
    config["chat_template"] += f"{{% if false %}}{' '.join(markers)}{{% endif %}}"
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path
