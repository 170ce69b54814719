"""The servers of docs/conformance.md, and how each is started. To add a server, add an entry to `SERVERS`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stopscan_conformance import APIS


@dataclass(frozen=True)
class Column:
    """A server. `command` starts it, and may contain `{python}`, `{bin}` (the folder of Python), `{model}`, `{gguf}`
    and `{port}`."""

    title: str
    command: str
    packages: Sequence[str]
    model: str | None = None
    apis: Sequence[str] = tuple(APIS)
    environment: dict[str, str] = field(default_factory=dict)
    proxy: Sequence[str] = ()  # more options for the proxy


VLLM = (
    "{bin}/vllm serve {model} --served-model-name reciter --enforce-eager --dtype float32 --max-model-len 8192 "
    "--gpu-memory-utilization 0.1 --port {port}"
)
SGLANG = (
    "{python} -m sglang.launch_server --model-path {model} --served-model-name reciter --device cpu "
    "--attention-backend torch_native --sampling-backend pytorch --disable-radix-cache --skip-server-warmup "
    "--mem-fraction-static 0.1 --dtype float32 --max-total-tokens 16384 --port {port}"
)
SGLANG_PROTECT = {"STOPSCAN_SGLANG": "1", "STOPSCAN_SGLANG_PROTECT": '["<think>", "</think>"]'}
PROTECT = {"STOPSCAN_VLLM": "1", "STOPSCAN_VLLM_PROTECT": '["<think>", "</think>"]'}
# Options of the proxy for servers that write the reasoning into the answer.
THOUGHTS = ("--protect", "<think>", "</think>")
# A Python program that starts llama.cpp's server, because the package xllamacpp has no command for this. Uses one
# thread: on a busy machine, several threads take 30 times as long.
LLAMA_CPP = (
    "import threading, xllamacpp as x; p = x.CommonParams(); "
    'p.model.path, p.model_alias, p.port, p.n_ctx, p.n_parallel = "{gguf}", ["reciter"], {port}, 32768, 4; '
    "p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1; s = x.Server(p); threading.Event().wait()"
)
SERVERS = {
    "example": Column(
        "examples/server.py",
        "{python} conformance/tests/example.py {port}",
        ("starlette", "uvicorn"),
        apis=("openai-chat", "anthropic"),
    ),
    "mlx-lm-stopscan": Column(
        "mlx-lm + stopscan",
        "{python} -m stopscan.mlx_lm.server --protect reasoning --model {model} --port {port}",
        ("mlx-lm", "mlx"),
        "default_model",
    ),
    "mlx-lm": Column(
        "mlx-lm", "{python} -m mlx_lm.server --model {model} --port {port}", ("mlx-lm", "mlx"), "default_model"
    ),
    "vllm-stopscan": Column("vLLM + stopscan", VLLM, ("vllm", "torch"), environment=PROTECT),
    "vllm": Column("vLLM", VLLM, ("vllm", "torch"), proxy=THOUGHTS),
    "sglang-stopscan": Column("sglang + stopscan", SGLANG, ("sglang", "torch"), environment=SGLANG_PROTECT),
    "sglang": Column("sglang", SGLANG, ("sglang", "torch"), proxy=THOUGHTS),
    "llama-cpp-python": Column(
        "llama-cpp-python",
        # Without `--interrupt_requests False`, each new request ends the stream of the previous request.
        "{python} -m llama_cpp.server --model {gguf} --model_alias reciter --n_ctx 8192 --interrupt_requests False "
        "--port {port}",
        ("llama-cpp-python",),
        proxy=THOUGHTS,
    ),
    "xllamacpp": Column(
        "llama.cpp's server",
        f"{{python}} -c '{LLAMA_CPP}'",
        ("xllamacpp", "gguf"),
        proxy=THOUGHTS,
    ),
    "transformers": Column(
        "transformers",
        "{bin}/transformers serve {model} --device cpu --port {port}",
        ("transformers", "torch"),
        "{model}",
        proxy=THOUGHTS,
    ),
}
