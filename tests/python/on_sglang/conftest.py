"""Real sglang on a CPU with the reciting checkpoint; ``ci/sglang-env`` makes the environment that these tests need."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
