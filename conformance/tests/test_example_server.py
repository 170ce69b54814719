"""`examples/server.py` passes the kit at its default level, with a model that recites the kit's texts."""

from __future__ import annotations

import pytest

from stopscan_conformance.__main__ import main


@pytest.mark.parametrize("api", ["openai-chat", "anthropic"])
def test_the_example_server_passes(example_url: str, api: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([example_url, "--api", api, "--model", "reciter", "--timeout", "120"])
    assert status == 0, capsys.readouterr().out
