"""The plugin that sglang loads: its environment variable, versions of sglang that do not fit, and the self-test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("sglang", reason="sglang is not installed; ci/sglang-env makes its environment")

from sglang.srt.managers.detokenizer_manager import DetokenizerManager
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.plugins.hook_registry import HookRegistry

from stopscan.engines import Defaults
from stopscan.sglang import _plugin
from stopscan.sglang._selftest import problems

pytestmark = pytest.mark.sglang


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    yield
    HookRegistry.reset()


@pytest.mark.parametrize("value", ["", "0", "1", "optional", "yes"])
def test_the_plugin_does_what_the_environment_asks(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPSCAN_SGLANG", value)
    HookRegistry.reset()
    if value == "yes":
        with pytest.raises(SystemExit, match="STOPSCAN_SGLANG must be 0, 1 or optional"):
            _plugin.register()
    else:
        _plugin.register()
    assert len(HookRegistry._hooks) == (3 if value in ("1", "optional") else 0)


UPGRADES = {
    "a function is gone": (Req, "check_match_stop_str_prefix", None, "has no .*check_match_stop_str_prefix"),
    "another argument": (DetokenizerManager, "_decode_batch_token_id_output", lambda self, a, b: [], "does not work"),
}


@pytest.mark.parametrize("name", UPGRADES)
def test_an_upgrade_that_does_not_fit_ends_the_start(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, function, message = UPGRADES[name]
    if function is None:
        monkeypatch.delattr(owner, attribute)
    else:
        monkeypatch.setattr(owner, attribute, function)
    HookRegistry.reset()
    monkeypatch.setenv("STOPSCAN_SGLANG", "1")
    with pytest.raises(SystemExit, match=message):
        _plugin.register()
    monkeypatch.setenv("STOPSCAN_SGLANG", "optional")
    _plugin.register()
    assert HookRegistry._hooks == {}


def test_the_self_test_is_right() -> None:
    assert problems(lambda failures: _plugin.hooks(Defaults(), failures)) == []
