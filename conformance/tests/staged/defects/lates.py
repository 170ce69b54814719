"""The right text, too late or too early."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from staged.defects.defect import wrong
from staged.generation import Generation
from staged.scanners import Simple

Chunks = Callable[[Generation], AsyncIterator[tuple[str, str]]]


class LongestLessOne(Simple):
    def hold(self) -> int:
        return max(map(len, self.stops), default=1) - 1


class Longest(Simple):
    def hold(self) -> int:
        return max(map(len, self.stops), default=0)


class OneMore(Simple):
    def hold(self) -> int:
        return super().hold() + 1 if self.stops else 0


class AllUnsent(Simple):
    """While something may begin a stop, nothing is sent."""

    def hold(self) -> int:
        return len(self.text) - self.sent if super().hold() else 0


class LettersOfStops(Simple):
    def hold(self) -> int:
        letters = "".join(self.stops)
        return len(self.text) - len(self.text.rstrip(letters)) if letters else 0


class Bytes(Simple):
    def hold(self) -> int:
        return len(self.text[len(self.text) - super().hold() :].encode())


class FirstLetterAnywhere(Simple):
    def hold(self) -> int:
        first = min((self.text.find(stop[0], self.sent) for stop in self.stops if stop[0] in self.text[self.sent :]),
                    default=len(self.text))  # fmt: skip
        return len(self.text) - first


class AllIfThereAreStops(Simple):
    def hold(self) -> int:
        return len(self.text) - self.sent if self.stops else 0


class NotTheFirstCharacter(Simple):
    def hold(self) -> int:
        held = super().hold()
        return held if held > 1 else 0


class AtMostFour(Simple):
    def hold(self) -> int:
        return min(super().hold(), 4)


def cut(at: Callable[[str], int]) -> Chunks:
    """Sends what comes before `at` of the text that waits, and the rest at the end."""

    async def chunks(made: Generation) -> AsyncIterator[tuple[str, str]]:
        waiting, last = "", "answer"
        async for kind, text in made.texts():
            if kind != last and waiting:
                yield last, waiting
                waiting = ""
            waiting, last = waiting + text, kind
            end = at(waiting)
            yield kind, waiting[:end]
            waiting = waiting[end:]
        yield last, waiting

    return chunks


def ten_each(waiting: str) -> int:
    return len(waiting) // 10 * 10


async def first_and_rest(made: Generation) -> AsyncIterator[tuple[str, str]]:
    rest, first = "", True
    async for _, text in made.texts():
        rest += "" if first else text
        if first and text:
            yield "answer", text
            first = False
    yield "answer", rest


DEFECTS = [
    wrong("the longest stop less one is held", "never-in-seventeen", "late", scanner=LongestLessOne),
    wrong(
        "the longest stop less one is held, as in vLLM", "long", "late", "openai-completions", scanner=LongestLessOne
    ),
    wrong("the longest stop is held", "long", "late", "anthropic", scanner=Longest),
    wrong("one character more is held", "released", "late", "responses-with-stop", scanner=OneMore),
    wrong("all is held while a stop may begin", "streams-while-held", "late", scanner=AllUnsent),
    wrong("all is held in a run", "streams-a-run", "late", "ollama-chat", scanner=AllUnsent),
    wrong("letters of stops are held", "released", "late", "generate", scanner=LettersOfStops),
    wrong("bytes are held for characters", "wide", "late", scanner=Bytes),
    wrong("all from a stop's first letter is held", "released-in-part", "late", scanner=FirstLetterAnywhere),
    wrong("stops that never fire are held for", "pruned", "late", "anthropic", scanner=Simple),
    wrong("with stops all is held", "streams-with-a-stop", "late", scanner=AllIfThereAreStops),
    wrong("a first character is not held", "streams-while-held", "late", scanner=NotTheFirstCharacter),
    wrong("more than four characters are not held", "released", "late", scanner=AtMostFour),
    wrong("one chunk for all", "streams", "late", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Anthropic", "streams", "late", "anthropic", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Responses", "streams", "late", "responses-with-stop", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in Ollama", "streams", "late", "ollama-generate", chunks=cut(lambda waiting: 0)),
    wrong("one chunk for all in sglang", "streams", "late", "generate", chunks=cut(lambda waiting: 0)),
    wrong("the first piece and the rest", "streams", "late", chunks=first_and_rest),
    wrong("words", "streams", "late", chunks=cut(lambda waiting: waiting.rfind(" ") + 1)),
    wrong("lines", "streams", "late", chunks=cut(lambda waiting: waiting.rfind("\n") + 1)),
    wrong("sentences", "streams", "late", "generate", chunks=cut(lambda waiting: waiting.rfind(". ") + 1)),
    wrong("ten characters each", "streams", "late", chunks=cut(ten_each)),
]
