"""Why a generation ended, and how nine HTTP APIs say it.

`to_*` writes the fields of a server's response, `from_*` reads a response or one event of a stream, `Reading` a whole
stream.
"""

from stopscan.finish._anthropic import from_anthropic
from stopscan.finish._bedrock import from_bedrock
from stopscan.finish._engines import from_llama_cpp, from_ollama, from_sglang, from_tgi
from stopscan.finish._finish import EndReason, Finish, Reason
from stopscan.finish._gemini import from_gemini
from stopscan.finish._openai import from_openai
from stopscan.finish._read import is_call
from stopscan.finish._reading import Api, Reading
from stopscan.finish._responses import from_responses
from stopscan.finish._types import (
    AnthropicFinish,
    BedrockFinish,
    GeminiFinish,
    LlamaCppFinish,
    OllamaFinish,
    OpenAIFinish,
    ResponsesFinish,
    SglangFinish,
    TgiFinish,
)
from stopscan.finish._write import (
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
    "Api",
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
