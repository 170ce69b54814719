"""The server answers requests that ordinary clients send. The comments name the source file of each request.

Open WebUI's files are in `backend/` of its repository; `routers/tasks.py` is that of commit 074d4883. Continue's files
are those of commit d0a3c0b6.
"""

from __future__ import annotations

from typing import Any

import pytest

COUNT = "1, 2, 3 hello world 4, 5, 6, 7, 8"
CHAT = [{"role": "user", "content": "[count]"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "[count]", "cache_control": {"type": "ephemeral"}}]}]
TOOLS: Any = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}]

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    # open_webui/utils/payload.py: apply_model_params_to_body_openai
    "Open WebUI, OpenAI": (
        "/v1/chat/completions",
        {"stream": False, "messages": CHAT, "temperature": 0.8, "top_p": 0.9, "min_p": 0.0, "max_tokens": 128,
         "frequency_penalty": 0.0, "presence_penalty": 0.0, "reasoning_effort": "medium", "seed": 42,
         "stop": ["<end>"], "logit_bias": {}, "response_format": {"type": "text"}},
    ),
    # The same file as for the entry above: apply_model_params_to_body_ollama and convert_payload_openai_to_ollama
    "Open WebUI, Ollama": (
        "/api/chat",
        {"stream": False, "messages": [{"role": "user", "content": "[count]"}], "keep_alive": "5m", "think": False,
         "num_predict": 128, "metadata": {"chat_id": "c"},
         "options": {"temperature": 0.8, "top_p": 0.9, "seed": 42, "mirostat": 0, "mirostat_eta": 0.1,
                     "mirostat_tau": 5.0, "num_ctx": 2048, "num_batch": 512, "num_keep": 24, "num_predict": 128,
                     "repeat_last_n": 64, "top_k": 40, "min_p": 0.0, "repeat_penalty": 1.0, "presence_penalty": 0.0,
                     "frequency_penalty": 0.0, "stop": ["<end>"], "num_gpu": 99, "use_mmap": True,
                     "use_mlock": False, "num_thread": 4}},
    ),
    # The same file as for the entry above: convert_messages_openai_to_ollama writes tool calls whose id is null
    "Open WebUI, Ollama's calls": (
        "/api/chat",
        {"stream": False, "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [
                {"index": 0, "id": None, "function": {"name": "look", "arguments": {}}}]},
            {"role": "tool", "content": "5", "tool_call_id": "c"}, *CHAT]},
    ),
    # open_webui/routers/tasks.py: generate_title
    "Open WebUI, titles": (
        "/v1/chat/completions",
        {"messages": CHAT, "stream": False, "max_completion_tokens": 1000,
         "metadata": {"task": "title_generation", "task_body": {"messages": CHAT}, "chat_id": None}},
    ),
    # The same function as for the entry above, for a model of Ollama. The function puts the limit at the top of the
    # body, where Ollama does not read it.
    "Open WebUI, titles by Ollama": (
        "/api/chat",
        {"messages": CHAT, "stream": False, "num_predict": 1000, "metadata": {"task": "title_generation"}},
    ),
    # core/llm/llms/Ollama.ts: _streamChat, where the history may have the model's reasoning
    "Continue, Ollama's chat": (
        "/api/chat",
        {"messages": [{"role": "user", "content": "Hi."}, {"role": "thinking", "content": "Hm."},
                      {"role": "assistant", "content": "Hello."}, *CHAT],
         "stream": False, "keep_alive": 1800, "think": False, "tools": TOOLS,
         "options": {"temperature": 0.5, "top_p": 1, "top_k": 20, "num_predict": 500, "stop": ["<end>"],
                     "num_ctx": 8192, "mirostat": 0, "num_thread": 4, "use_mmap": True, "min_p": 0, "num_gpu": 1}},
    ),
    # core/llm/llms/Ollama.ts: _streamComplete, called by core/autocomplete/generation/CompletionStreamer.ts
    "Continue, Ollama's completion": (
        "/api/generate",
        {"prompt": "[count]", "raw": True, "stream": False, "keep_alive": 1800,
         "options": {"temperature": 0.01, "num_predict": 256, "stop": ["<end>"], "num_ctx": 8192}},
    ),
    # core/llm/llms/Ollama.ts: loadModel
    "Continue, Ollama's load": ("/api/generate", {"prompt": "", "keep_alive": 1800}),
    # core/llm/openaiTypeConverters.ts: toChatBody
    "Continue, OpenAI": (
        "/v1/chat/completions",
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."},
                      {"role": "assistant", "content": " ", "reasoning_content": "Hm."}, *PARTS],
         "max_tokens": 4096, "stream": False, "temperature": 0, "top_p": 1, "frequency_penalty": 0,
         "presence_penalty": 0, "stop": ["<end>"],
         "tools": [{**TOOLS[0], "function": {**TOOLS[0]["function"], "strict": False}}]},
    ),
    # In the same file as the entry above: toCompleteBody
    "Continue, OpenAI's completions": (
        "/v1/completions",
        {"prompt": "[count]", "max_tokens": 256, "temperature": 0.01, "top_p": 1, "frequency_penalty": 0,
         "presence_penalty": 0, "stream": False, "stop": ["<end>"]},
    ),
    # core/llm/llms/OpenAI.ts: _convertArgsResponses
    "Continue, Responses": (
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "[count]"}]}], "temperature": None,
         "top_p": None, "reasoning": {"effort": "medium", "summary": "auto"}, "stream": False,
         "include": ["reasoning.encrypted_content"], "max_output_tokens": 4096,
         "tools": [{"type": "function", **TOOLS[0]["function"]}]},
    ),
    # core/llm/llms/Anthropic.ts: convertArgs; and packages/openai-adapters/src/apis/Anthropic.ts for `cache_control`
    "Continue, Anthropic": (
        "/v1/messages",
        {"messages": PARTS, "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
         "max_tokens": 2048, "temperature": 0, "top_k": 40, "top_p": 1, "stop_sequences": ["<end>"], "stream": False,
         "thinking": {"type": "enabled", "budget_tokens": 2048},
         "tools": [{"name": "look", "description": "", "input_schema": {"type": "object"}}]},
    ),
    # litellm/llms/ollama/completion/transformation.py
    "LiteLLM, ollama/": (
        "/api/generate",
        {"prompt": "[count]", "options": {"seed": 5, "num_ctx": 2048, "temperature": 0}, "stream": False,
         "images": []},
    ),
    # langchain_openai/chat_models/base.py
    "LangChain, OpenAI": (
        "/v1/chat/completions",
        {"messages": CHAT, "stream": False, "temperature": 0.7, "n": 1, "seed": 1, "logprobs": False, "user": "u",
         "service_tier": "auto", "stop": ["<end>"]},
    ),
    # langchain_ollama/chat_models.py
    "LangChain, Ollama": (
        "/api/chat",
        {"messages": [{"role": "user", "content": "[count]", "images": []}], "stream": False, "format": "",
         "think": False, "logprobs": None, "top_logprobs": None, "tools": None, "keep_alive": None,
         "options": {"mirostat": None, "num_ctx": 2048, "repeat_last_n": None, "repeat_penalty": 1.0, "seed": 7}},
    ),
    # codex-rs/core/src/client.rs
    "Codex": (
        "/v1/responses",
        {"instructions": "Be brief.", "input": [{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "[count]"}]}], "tools": [], "tool_choice": "auto",
         "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False,
         "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k"},
    ),
    # openai-agents: models/openai_responses.py
    "OpenAI Agents": (
        "/v1/responses",
        {"input": [{"role": "user", "content": "[count]"}], "instructions": None, "tools": [], "truncation": None,
         "metadata": {"a": "b"}, "store": False, "text": {"format": {"type": "text"}}},
    ),
    # sglang/lang/backend/runtime_endpoint.py
    "sglang's frontend": (
        "/generate",
        {"text": "[count]", "stream": False, "sampling_params": {
            "max_new_tokens": 128, "stop": ["<end>"], "temperature": 0, "top_p": 1.0, "top_k": 0,
            "frequency_penalty": 0.0, "presence_penalty": 0.0, "skip_special_tokens": False}, "return_logprob": False},
    ),
}  # fmt: skip


def said(answer: Any) -> str:
    """Returns the text of an answer in the form of any API."""
    match answer:
        case {"choices": [{"message": {"content": str(text)}}]} | {"choices": [{"text": str(text)}]}:
            return text
        case {"content": [{"type": "text", "text": str(text)}]} | {"message": {"content": str(text)}}:
            return text
        case {"output": [{"content": [{"text": str(text)}]}]} | {"response": str(text)} | {"text": str(text)}:
            return text
    raise AssertionError(answer)


@pytest.mark.parametrize("name", REQUESTS)
def test_ordinary_requests_are_answered(client: Any, name: str) -> None:
    path, body = REQUESTS[name]
    response = client.http.post(path, json={"model": client.model, **body})
    assert response.status_code == 200, response.text
    assert said(response.json()) == ("" if "load" in name else COUNT)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 32_000}),  # a default of Continue, an editor plugin
        ("/v1/completions", {"prompt": "[count]", "max_tokens": 2**40}),
        ("/v1/messages", {"messages": CHAT, "max_tokens": 64_000}),
        ("/v1/responses", {"input": "[count]", "max_output_tokens": 128_000}),
        ("/api/chat", {"messages": CHAT, "stream": False, "options": {"num_predict": 32_000}}),
        ("/generate", {"text": "[count]", "sampling_params": {"max_new_tokens": 32_000}}),
    ],
)
def test_a_limit_beyond_the_context_is_what_is_left_of_it(client: Any, path: str, body: dict[str, Any]) -> None:
    response = client.http.post(path, json=body)
    assert response.status_code == 200, response.text
    assert said(response.json()) == COUNT


def test_loading_says_so(client: Any) -> None:
    for path in ("/api/generate", "/api/chat"):
        answer = client.http.post(path, json={"model": client.model, "keep_alive": 0}).json()
        assert (answer["done"], answer["done_reason"]) == (True, "load")


def test_what_clients_ask_first(client: Any) -> None:
    assert client.openai.models.retrieve(client.model).id == client.model
    assert [model.id for model in client.openai.models.list()] == [client.model]
    assert client.http.get("/v1/models/gpt-2").status_code == 404
    assert client.ollama.list().models[0].model == client.model
    assert client.ollama.ps().models[0].model == client.model
    assert "mlx.context_length" in client.ollama.show(client.model).modelinfo
    assert client.http.get("/api/version").json()["version"]
