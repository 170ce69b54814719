"""Why a generation ended, as nine HTTP APIs say it.

`to_*` returns the fields for a server's response. `from_*` reads a response or one event of a stream, and `Reading`
reads a whole stream.
"""

from stopscan.finish._apis import (
    ApiName,
    from_anthropic,
    from_bedrock,
    from_gemini,
    from_llama_cpp,
    from_ollama,
    from_openai,
    from_responses,
    from_sglang,
    from_tgi,
)
from stopscan.finish._finish import EndReason, Finish, Reason
from stopscan.finish._read import is_call
from stopscan.finish._reading import Reading
from stopscan.finish._write import (
    AnthropicFinish,
    BedrockFinish,
    GeminiFinish,
    LlamaCppFinish,
    OllamaFinish,
    OpenAIFinish,
    ResponsesFinish,
    SglangFinish,
    TgiFinish,
    to_anthropic,
    to_bedrock,
    to_gemini,
    to_llama_cpp,
    to_ollama,
    to_openai,
    to_responses,
    to_sglang,
    to_tgi,
)

__all__ = [
    "AnthropicFinish",
    "ApiName",
    "BedrockFinish",
    "EndReason",
    "Finish",
    "GeminiFinish",
    "LlamaCppFinish",
    "OllamaFinish",
    "OpenAIFinish",
    "Reading",
    "Reason",
    "ResponsesFinish",
    "SglangFinish",
    "TgiFinish",
    "from_anthropic",
    "from_bedrock",
    "from_gemini",
    "from_llama_cpp",
    "from_ollama",
    "from_openai",
    "from_responses",
    "from_sglang",
    "from_tgi",
    "is_call",
    "to_anthropic",
    "to_bedrock",
    "to_gemini",
    "to_llama_cpp",
    "to_ollama",
    "to_openai",
    "to_responses",
    "to_sglang",
    "to_tgi",
]
