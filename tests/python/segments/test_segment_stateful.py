"""Random calls on segmenters and their copies: each must behave as the simple reference does after the same calls."""

from __future__ import annotations

import copy
import pickle

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from reference import SegmentReference
from segment_setups import Setup, setups
from setups import texts
from test_properties import same

from stopscan.segments import Segmenter

Pair = tuple[Segmenter, SegmentReference]


class Segmenters(RuleBasedStateMachine):
    pairs = Bundle("pairs")

    @initialize(target=pairs, setup=setups())
    def begin(self, setup: Setup) -> Pair:
        self.setup = setup
        self.all: list[Pair] = []
        return self._add(setup.segmenter(), setup.reference())

    def _add(self, segmenter: Segmenter, reference: SegmentReference) -> Pair:
        self.all.append((segmenter, reference))
        return self.all[-1]

    @rule(pair=pairs, data=st.data(), armed=st.booleans(), longest_filler=st.sampled_from([0, 0, 300]))
    def feed(self, pair: Pair, data: st.DataObject, armed: bool, longest_filler: int) -> None:
        segmenter, reference = pair
        delta = data.draw(texts(self.setup, longest_filler=longest_filler))
        assert segmenter.feed(delta, armed=armed) == reference.feed(delta, armed=armed)

    @rule(pair=pairs)
    def flush(self, pair: Pair) -> None:
        segmenter, reference = pair
        assert segmenter.flush() == reference.flush()
        assert segmenter.flush() == []

    @rule(pair=pairs)
    def reset(self, pair: Pair) -> None:
        segmenter, reference = pair
        segmenter.reset()
        reference.reset()

    @rule(
        target=pairs,
        pair=pairs,
        duplicate=st.sampled_from(
            [Segmenter.copy, copy.copy, copy.deepcopy, lambda segmenter: pickle.loads(pickle.dumps(segmenter))]
        ),
    )
    def copy(self, pair: Pair, duplicate: object) -> Pair:
        segmenter, reference = pair
        return self._add(duplicate(segmenter), copy.copy(reference))  # type: ignore[operator]

    @invariant()
    def agree(self) -> None:
        for segmenter, reference in getattr(self, "all", []):
            assert (segmenter.held, segmenter.unused) == (reference.held, reference.unused)
            assert segmenter.region == reference.region
            assert same(segmenter.match, reference.match)


TestSegmenters = Segmenters.TestCase
TestSegmenters.settings = settings(max_examples=150, stateful_step_count=40)
