"""An answer of a model, and the calls that appear in answers of several forms."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    form: str
    source: str
    text: str
    segments: list[tuple[str, str]]
    prompt: str = ""  # the end of the prompt, which may open a region


WEATHER = '{"name": "get_weather", "arguments": {"city": "Tokyo"}}'
TIME = '{"name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}'
XML = "\n<function=get_weather>\n<parameter=city>\nTokyo\n</parameter>\n</function>\n"
GLM = "get_weather\n<arg_key>city</arg_key>\n<arg_value>Tokyo</arg_value>\n"
INVOKE = '\n<invoke name="get_weather">\n<parameter name="city">Tokyo</parameter>\n</invoke>\n'
DSML = (
    '\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">杭州</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n"
)
KIMI = '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Tokyo"}<|tool_call_end|>'
