"""Answers with markers that engines do not know by themselves, and test models that write these answers."""

from __future__ import annotations

import json
from pathlib import Path

from stopscan.segments import FORMATS
from stopscan_conformance.reciter import SCRIPTS, Reciter

# For each format: the tokens of an output; its text up to the END in the reasoning; its text up to the END in the
# answer.
HARMONY = list(map(str, SCRIPTS["harmony"]))
MISTRAL = ["[THINK]", "Is it EN", "D?", "[/THINK]", "It is 5 or 6 EN", "D here"]
FORMS = {
    "harmony": (HARMONY, "<|channel|>analysis<|message|>Is it ", "".join(HARMONY[:-3])),
    "mistral": (MISTRAL, "[THINK]Is it ", "[THINK]Is it END?[/THINK]It is 5 or 6 "),
}
THOUGHT = {"harmony": 6, "mistral": 2}


def write(form: str, path: Path) -> Path:
    """Writes a small model to ``path`` that answers the prompt ``[said]``. The chat template has the form's markers."""
    Reciter({"said": FORMS[form][0]}, added_tokens=()).write(path)
    config = json.loads((path / "tokenizer_config.json").read_text())
    markers = sorted({marker for edges in FORMATS[form].values() for marker in edges})
    config["chat_template"] += f"{{% if false %}}{' '.join(markers)}{{% endif %}}"
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path
