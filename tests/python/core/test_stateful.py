"""Random calls on scanners and their copies: each must behave as the simple reference behaves after the same calls."""

from __future__ import annotations

import copy
import pickle

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from reference import Reference
from setups import Setup, setups, texts
from test_properties import same

from stopscan import StopScanner

Pair = tuple[StopScanner, Reference]


class Scanners(RuleBasedStateMachine):
    pairs = Bundle("pairs")

    @initialize(target=pairs, setup=setups())
    def begin(self, setup: Setup) -> Pair:
        self.setup = setup
        self.all: list[Pair] = []
        return self._add(setup.scanner(), setup.reference())

    def _add(self, scanner: StopScanner, reference: Reference) -> Pair:
        self.all.append((scanner, reference))
        return self.all[-1]

    @rule(pair=pairs, data=st.data(), armed=st.booleans(), longest_filler=st.sampled_from([0, 0, 300]))
    def feed(self, pair: Pair, data: st.DataObject, armed: bool, longest_filler: int) -> None:
        scanner, reference = pair
        delta = data.draw(texts(self.setup, longest_filler=longest_filler))
        assert scanner.feed(delta, armed=armed) == reference.feed(delta, armed=armed)

    @rule(pair=pairs, data=st.data())
    def bypass(self, pair: Pair, data: st.DataObject) -> None:
        scanner, reference = pair
        text = data.draw(texts(self.setup))
        assert scanner.bypass(text) == reference.bypass(text)

    @rule(pair=pairs)
    def flush(self, pair: Pair) -> None:
        scanner, reference = pair
        assert scanner.flush() == reference.flush()
        assert scanner.flush() == ""

    @rule(pair=pairs)
    def reset(self, pair: Pair) -> None:
        scanner, reference = pair
        scanner.reset()
        reference.reset()

    @rule(
        target=pairs,
        pair=pairs,
        duplicate=st.sampled_from(
            [StopScanner.copy, copy.copy, copy.deepcopy, lambda scanner: pickle.loads(pickle.dumps(scanner))]
        ),
    )
    def copy(self, pair: Pair, duplicate: object) -> Pair:
        scanner, reference = pair
        return self._add(duplicate(scanner), copy.copy(reference))  # type: ignore[operator]

    @invariant()
    def agree(self) -> None:
        for scanner, reference in getattr(self, "all", []):
            assert (scanner.held, scanner.unused) == (reference.held, reference.unused)
            assert same(scanner.match, reference.match)


TestScanners = Scanners.TestCase
TestScanners.settings = settings(max_examples=150, stateful_step_count=40)
