"""The rules, each with its level and source, and `judge`, which finds the rules that an answer breaks.

To add a rule, write its row into `_RULES`, and report its violations under its name: here for one answer, in
`several.py` for several requests, in `clock.py` for times. The report names the rule of each failure.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import Any, Literal

from stopscan_conformance.apis import Api, End
from stopscan_conformance.client import Answer
from stopscan_conformance.oracle import Recital
from stopscan_conformance.probe import Can
from stopscan_conformance.sentences import REFUSES, SENTENCES, Sentence, sentence

Column = Literal["text", "finish", "form", "late", "cost"]  # a promise: a group of rules, and a column of the report
COLUMNS: tuple[Column, ...] = ("text", "finish", "form", "late", "cost")
Level = Literal["documented", "usual", "advice"]
LEVELS: tuple[Level, ...] = ("documented", "usual", "advice")
Findings = Mapping[str, "str | None"]  # what is wrong, by rule; None if the rule is kept

VLLM = "https://docs.vllm.ai/en/latest/api/vllm/sampling_params/"
SGLANG = "https://docs.sglang.ai/basic_usage/sampling_params.html"
VLLM_OUTPUTS = "https://docs.vllm.ai/en/latest/api/vllm/outputs/"


@dataclass(frozen=True)
class Rule:
    """A rule. `column` is its promise, which is a group of rules. For an API whose reference documents the rule, the
    level is "documented" (`sentences.json` has the sentence). For any other API the level is `level`, and `basis` says
    what the rule is based on. If `basis` is empty, the rule is based on the API's page."""

    name: str
    column: Column
    level: Level
    says: str
    basis: str = ""

    def level_of(self, api: Api) -> Level:
        return "documented" if any(self.name == one.rule and api.name in one.apis.split() for one in SENTENCES) else (
            self.level)  # fmt: skip

    def sentence(self, api: Api, fault: str = "", case: str = "") -> Sentence | None:
        """Returns the first sentence that documents the rule for an API, and fits the complaint `fault` and the name
        of the case. Returns None if there is no such sentence."""
        return sentence(self.name, api.name, fault, case)

    def source(self, api: Api, fault: str = "", case: str = "") -> str:
        """Returns the sentence that the rule quotes, and its document. If the rule quotes none, returns
        what the rule is based on."""
        documented = self.sentence(api, fault, case)
        return f"\u201c{documented.quote}\u201d ({documented.source})" if documented else self.basis or api.source


_RULES = (
    Rule("text", "text", "usual", "the text is all of what comes before the stop, and nothing else"),
    Rule("answers", "text", "usual", "each right request gets a whole answer", "all engines answer"),
    Rule("isolation", "text", "usual", "no request changes another one's answer"),
    Rule("rows", "text", "usual", "each row of an answer has its own text and end"),
    Rule("competing-stops", "text", "usual", "of several stops the one that completes first counts, then the longest",
         f"{VLLM} and {SGLANG}: generation ends as soon as a stop is there"),
    Rule("stop-token-ids", "text", "usual", "a stop token ends the answer, and is not in it", f"{VLLM} and {SGLANG}"),
    Rule("half-characters", "text", "advice", "half a character at the end comes out as U+FFFD",
         "what the model said should not get lost"),
    Rule("stop-in-reasoning", "text", "advice", "no stop fires in reasoning, or around it",
         "a user's stop is about the answer"),
    Rule("finish-reason", "finish", "usual", "the finish reason is the API's own word for why the answer ended"),
    Rule("names-the-stop", "finish", "usual", "the answer names the stop that fired", f"{VLLM_OUTPUTS} and {SGLANG}"),
    Rule("same-step", "finish", "usual", "a stop, or the model's own end, in the last token beats the limit",
         f"{VLLM}: stops and end tokens are looked for before the limit"),
    Rule("form", "form", "usual", "the answer has the form of its API"),
    Rule("usual-form", "form", "usual", "the answer has the form that clients are written for",
         "no sentence says so, but the API's own servers and the engines do it"),
    Rule("official-client", "form", "usual", "the official client of the API reads the same answer",
         "the official client itself"),
    Rule(REFUSES, "form", "usual", "a form of request that the reference promises is not refused"),
    Rule("wrong-request", "form", "usual", "a wrong request gets a 4xx", f"{VLLM} and {SGLANG} check their requests"),
    Rule("odd-stops", "form", "usual", "a wrong stop is refused, or the others count", f"{VLLM} and {SGLANG}"),
    Rule("logprobs", "form", "usual", "the log probabilities are those of the text's tokens", VLLM_OUTPUTS),
    Rule("refusal", "form", "advice", "a refusal of stops names the stops as the reason",
         "the user has to know what to change"),
    Rule("usage", "cost", "usual", "no fewer tokens are counted than the visible text has, no more than the limit"),
    Rule("exact-usage", "cost", "usual", "exactly the tokens of the answer are counted", VLLM_OUTPUTS),
    Rule("prompt-tokens", "cost", "usual", "the tokens of the prompt are counted right"),
    Rule("withheld", "late", "advice", "only what may become a stop is withheld, and no longer",
         "users read as it comes"),
    Rule("pace", "late", "advice", "text comes as soon as it is safe", "users read as it comes"),
    Rule("cost-of-a-stop", "cost", "advice", "nothing is generated after a stop", "it costs the operator"),
    Rule("cost-after-leaving", "cost", "advice", "nothing is generated for a client that has left",
         "it costs the operator"),
)  # fmt: skip
RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}


@dataclass(frozen=True, eq=False)
class Expected:
    """The texts, ends and token counts that are correct in an answer. `also` has wrong texts that break only a rule of
    the level "advice". Its keys are the names of these rules."""

    answers: tuple[tuple[str, str], ...]  # pairs of text and reasoning, one for each way to separate them
    ends: tuple[End, ...]
    tokens: tuple[int, ...]
    recital: Recital | None = None  # the correct answer to compare chunks with; None if chunks are not compared
    text: str = "text"  # the name of the rule that a wrong text breaks
    finish: str = "finish-reason"  # the name of the rule that a wrong finish reason breaks
    worded: bool = False  # the API has a finish reason of its own for stops
    also: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    most: float = inf  # the token limit of the request
    least: int = 0  # how many tokens the visible text has
    rest: str = ""  # the text after the answer, up to the end of the last token: the stop, and text after it
    stopped: bool = False  # a stop string ends the answer, although the API may not say so
    api: str = ""  # the name of the API; `sentences.json` says which faults of form its reference forbids


def judge(answer: Answer, expected: Expected, /, *, stream: bool, can: Can = Can()) -> Findings:  # noqa: B008
    """Returns for each rule that applies to an answer how the answer breaks it, or None if the answer keeps it."""
    if answer.error is not None and not answer.chunks and answer.end is None:
        return {"answers": f"no answer: {answer.error}"}
    findings = _form(answer, expected.api)
    if answer.read_again:
        findings["official-client"] = answer.unread
    pair = (answer.text, answer.reasoning)
    lesser = next((rule for rule, answers in expected.also.items() if pair in answers), None)
    wrong = None if pair in expected.answers else _other_text(answer, expected)
    if lesser is not None and wrong:
        findings[lesser] = wrong
        if lesser == "stop-in-reasoning":  # the answer ends elsewhere, so the other rules cannot be judged
            return findings
    else:
        # If an answer broke off, its wrong text breaks the rule "answers", not the rule "text". In a case of several
        # requests, `merged` reports a break of "text" as "isolation", as if another request had changed the text.
        rule = "answers" if wrong and answer.error else expected.text
        findings |= {**dict.fromkeys(expected.also if wrong is None else ()), rule: wrong}
    findings |= _end(answer, expected, can)
    if stream and expected.recital is not None and wrong is None:
        findings["withheld"] = lateness(answer.chunks, expected.recital)
    return {**findings, **judge_usage(answer.head.get("tokens"), expected)}


def _form(answer: Answer, api: str) -> dict[str, str | None]:
    """Divides the faults of an answer's form between two rules. A fault that a sentence of the API's reference forbids
    breaks the rule "form". All other faults break the rule "usual-form"."""
    usual = [fault for fault in answer.faults if api and sentence("form", api, fault) is None]
    documented = [fault for fault in answer.faults if fault not in usual]
    findings = {"form": "; ".join(documented) or None, "usual-form": "; ".join([*filter(None, [answer.error]), *usual])}
    return {rule: fault for rule, fault in findings.items() if fault or rule == "form"}


def judge_usage(tokens: Any, expected: Expected) -> Findings:
    """Judges the server's token count. With speculative decoding, a server may generate tokens after the stop, and
    count them. This breaks only the rule `cost-of-a-stop`, unless the count is above the token limit."""
    if type(tokens) is not int:
        return {}
    wrong = f"{tokens} tokens counted, not {expected.tokens[0]}"
    if not expected.least <= tokens <= expected.most:
        return {"usage": wrong}
    if expected.stopped and tokens > expected.tokens[0]:
        return {"usage": None, "cost-of-a-stop": wrong}
    return {"usage": None, "exact-usage": None if tokens in expected.tokens else wrong}


def _end(answer: Answer, expected: Expected, can: Can) -> Findings:
    """Judges the finish reason, and separately the name of the stop."""
    ended, right = answer.end, expected.ends[0]
    words = {_word(end, expected) for end in expected.ends}
    if ended is None or _word(ended, expected) not in words:
        return {expected.finish: f"ended by {_words(ended)}, not {_words(right)}"}
    findings: dict[str, str | None] = {expected.finish: None}
    if can.name_stops and (ended[1] is not None or any(end[1] is not None for end in expected.ends)):
        wrong = f"ended by {_words(ended)}, not {_words(right)}"
        findings["names-the-stop"] = None if ended in expected.ends else wrong
    return findings


def _word(end: End, expected: Expected) -> str:
    """Returns why the answer ended, as one word. After a stop, the word is "eos" if the API has the same finish reason
    for stops and for EOS."""
    return "eos" if end[0] in ("stop_sequence", "stop_token") and not expected.worded else end[0]


def _words(end: End | None) -> str:
    if end is None:
        return "nothing"
    return end[0] if end[1] is None else f"{end[0]} {end[1]!r}"


def _other_text(answer: Answer, expected: Expected) -> str:
    text, reasoning = expected.answers[0]
    if answer.text not in [text for text, _ in expected.answers]:
        return f"text {shown(answer.text, text)}, not {shown(text, answer.text)}"
    return f"reasoning {shown(answer.reasoning, reasoning)}, not {shown(reasoning, answer.reasoning)}"


def shown(text: str, other: str) -> str:
    """Returns `text` in quotes, or if it is long, only the part around its first difference from `other`."""
    if len(text) <= 200:
        return repr(text)
    same = next((i for i, pair in enumerate(zip(text, other, strict=False)) if len({*pair}) > 1), len(other))
    return f"...{text[max(0, same - 20) : same + 40]!r} ({len(text)} characters)"


def merged(findings: Sequence[Findings], *, together: bool = True) -> Findings:
    """Joins the findings of several requests of one case. Keeps the first violation of each rule. If `together` is
    true, one request may have changed the answer to another one. So a wrong text is reported under the rule
    `isolation`, and not under `text`."""
    kept: dict[str, str | None] = {}
    for number, one in enumerate(findings, 1):
        for rule, fault in one.items():
            name = "isolation" if together and rule == "text" else rule
            numbered = f"{fault} (request {number} of {len(findings)})" if fault and len(findings) > 1 else fault
            kept[name] = kept.get(name) or numbered
    return kept


def columns_of(findings: Findings) -> dict[Column, str | None]:
    """Returns the faults of each promise (a group of rules). If all rules of a promise are kept, the value is None."""
    faults: dict[Column, list[str]] = {}
    for rule, fault in findings.items():
        faults.setdefault(RULES[rule].column, []).extend([fault] if fault else [])
    return {column: "; ".join(faults[column]) or None for column in COLUMNS if column in faults}


# A step is a token that makes more text safe. In a stream with fewer steps than `LONG`, sizes of chunks are not judged.
LONG = 100
# Speculative decoding gives at most this many steps at once.
TOO_MANY = 12
REST = 64  # a chunk is too large if it has more steps than this, and more than a quarter of all steps
SPLIT = 1.3  # if there are more chunks than this for each step, the server sends parts of tokens


def lateness(chunks: Sequence[str], recital: Recital, /) -> str | None:
    """Returns a complaint if a chunk ends at a wrong place, or if chunks are too large. Otherwise returns None. The
    text must be correct.

    Safe text can no longer become part of a stop. After each token, the server may send all safe text, and nothing
    else. So each chunk must end at the end of the safe text after some token. A chunk may have the text of several
    tokens.

    Some servers send parts of tokens, such as single characters. Their chunks are not judged here: `clock` judges their
    times.
    """
    ends = [*accumulate(map(len, chunks))]
    steps = steps_of(recital)
    if steps and len(chunks) / len(steps) > SPLIT:
        return None
    return _misplaced(ends, recital) or crowded([steps_in(steps, 0, end) for end in ends], len(steps))


def steps_of(recital: Recital) -> list[int]:
    """Returns the lengths that the safe text has after the tokens of the answer, in increasing order and without
    repetitions. Safe text can no longer become part of a stop."""
    return sorted({*recital.safe} - {0})


def steps_in(steps: Sequence[int], begin: int, end: int) -> int:
    """Returns the number of steps in `text[begin:end]`. A step is a token that makes more text safe to send."""
    return bisect_right(steps, end) - bisect_right(steps, begin)


def crowded(known: Sequence[int], total: int) -> str | None:
    """Returns a complaint if one chunk is very large, or if most of the text comes in large chunks. The size of a chunk
    is its count of steps: tokens that make more text safe. `known` has the count of all steps up to the end of each
    chunk."""
    at_once = sorted(now - before for before, now in zip([0, *known], known, strict=False))
    if total < LONG or not at_once:
        return None
    if at_once[-1] > max(total / 4, REST):
        return f"one of {len(at_once)} chunks has the text of {at_once[-1]} of {total} tokens"
    counted = [*accumulate(at_once)]
    usual = at_once[bisect_left(counted, counted[-1] / 2)]  # half of the tokens came in chunks of this size or larger
    return f"text comes {usual} tokens at once" if usual > TOO_MANY else None


def _misplaced(ends: Sequence[int], recital: Recital) -> str | None:
    worst = 0
    message = None
    safe_ends = {*recital.safe}
    for end in ends:
        if end in safe_ends:
            continue
        # How much text was safe after the token that completed the last character of the chunk.
        safe = recital.safe[bisect_left(recital.complete, end)]
        if abs(safe - end) > worst:
            worst = abs(safe - end)
            what = "late by at least" if safe > end else "early by"
            message = f"{what} {worst} characters: a chunk ends with {recital.text[:end][-20:]!r}"
    return message
