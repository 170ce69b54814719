"""The plugin reads a server's environment variables, and installs stopscan after a self-test."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed; ci/vllm-env makes its environment")

import vllm
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.engine.output_processor import RequestState
from vllm_harness import patched, text

from stopscan.vllm import install, uninstall

pytestmark = pytest.mark.vllm


@pytest.fixture(autouse=True)
def _tested() -> None:
    """Overrides the fixture that skips the self-test, so that the self-test runs in this file."""


def plugin() -> None:
    """Calls the plugin, and then makes an ``InputProcessor``, as vLLM does in a process that makes an engine."""
    (entry_point,) = entry_points(group="vllm.general_plugins", name="stopscan")
    entry_point.load()()
    with pytest.raises(AttributeError, match="model_config"):
        InputProcessor(SimpleNamespace())


@pytest.mark.parametrize("environment", [{}, {"STOPSCAN_VLLM": ""}, {"STOPSCAN_VLLM": "0"}])
def test_the_plugin_is_off_unless_asked_for(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.delenv("STOPSCAN_VLLM", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    plugin()
    assert patched() == before


def test_the_plugin_takes_the_markers_from_the_environment(
    tokenizer: Any, reciter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    plugin()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it ", "END")
    uninstall()
    monkeypatch.setenv("STOPSCAN_VLLM_PROTECT", '["<think>", "</think>"]')
    plugin()
    assert text(tokenizer, reciter, "think", stop=["END"]) == ("<think>Is it END?</think>It is 5 or 6 ", "END")


def test_the_plugin_installs_where_vllm_has_no_rust_frontend(monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.delitem(vllm.envs.environment_variables, "VLLM_USE_RUST_FRONTEND", raising=False)
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    plugin()
    assert all(new is not old for new, old in zip(patched(), before, strict=True))


def test_plugin_before_ours_does_not_block_stopscan(monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.setattr(InputProcessor, "__init__", InputProcessor.__init__)
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    (entry_point,) = entry_points(group="vllm.general_plugins", name="stopscan")
    entry_point.load()()
    ours, made = InputProcessor.__init__, []

    def original(self: Any, *args: Any, **options: Any) -> None:
        made.append(self)
        ours(self, *args, **options)

    monkeypatch.setattr(InputProcessor, "__init__", original)
    with pytest.raises(AttributeError, match="model_config"):
        InputProcessor(SimpleNamespace())
    assert made
    assert all(new is not old for new, old in zip(patched(), before, strict=True))


@pytest.mark.parametrize("problem", ["parts", "rust", "names"])
def test_unfit_vllm_is_refused_or_warned_about(
    problem: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = patched()
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    fits = "does not fit this vLLM: cannot import name 'VLLMValidationError'"
    message = {"parts": "does not fit vLLM", "rust": "VLLM_USE_RUST_FRONTEND=1", "names": fits}[problem]
    if problem == "rust":
        monkeypatch.setattr(vllm.envs, "VLLM_USE_RUST_FRONTEND", True, raising=False)
    elif problem == "names":
        monkeypatch.delitem(sys.modules, "stopscan.vllm._install", raising=False)
        monkeypatch.delitem(sys.modules, "stopscan.vllm._adapter", raising=False)
        monkeypatch.delattr(vllm.exceptions, "VLLMValidationError")
    else:
        monkeypatch.delattr(RequestState, "_new_completion_output")
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    with pytest.raises(RuntimeError, match=message):
        plugin()
    monkeypatch.setenv("STOPSCAN_VLLM", "optional")
    plugin()
    (warning,) = {(record.levelname, record.message) for record in caplog.records if "stopscan" in record.name}
    assert warning[0] == "WARNING"
    assert warning[1].startswith("running without stopscan: ")
    assert message in warning[1]
    monkeypatch.undo()
    assert patched() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STOPSCAN_VLLM", "yes"),
        ("STOPSCAN_VLLM_PROTECT", "<think>"),
        ("STOPSCAN_VLLM_PROTECT", '["<think>"]'),
        ("STOPSCAN_VLLM_PROTECT", '"<think>"'),
        ("STOPSCAN_VLLM_PROTECT", '["<a>", "</a>", "<a>", "</b>"]'),
        ("STOPSCAN_VLLM_PROTECT", '["\\ud800", "</a>"]'),
        ("STOPSCAN_VLLM_LIMITS", "patterns=many"),
        ("STOPSCAN_VLLM_LIMITS", "regexes=5"),
        ("STOPSCAN_VLLM_LIMITS", "patterns=-"),
        ("STOPSCAN_VLLM_REPEAT", "2"),
    ],
)
def test_malformed_environment_variable_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patched()
    monkeypatch.setenv("STOPSCAN_VLLM", "1")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=rf"^{name}(:| must be)"):
        plugin()
    assert patched() == before


def test_the_entry_point_imports_nothing_else_of_the_adapter() -> None:
    (entry_point,) = entry_points(group="vllm.general_plugins", name="stopscan")
    assert entry_point.value == "stopscan.vllm:plugin"
    code = "import sys; from stopscan.vllm import plugin; print(*(m for m in sys.modules if m.startswith('stopscan.')))"
    came = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in came if name.startswith(("stopscan.vllm", "stopscan.engines"))] == ["stopscan.vllm"]
    assert "vllm" not in came


def test_log_names_stopscan_and_its_regions_once(
    marked: Any, start: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("vllm.stopscan")
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    # A logger caches which levels are on. `set_level` clears this cache. An assignment to `logger.level` does not.
    caplog.set_level(logging.INFO, logger.name)
    install()
    start(None, "deepseek_r1")
    lines = {record.message for record in caplog.records if record.name == logger.name}
    assert lines == {"stopscan finds the stops; known regions and their opening markers: reasoning (<think>)"}
