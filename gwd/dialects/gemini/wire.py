"""What a client of Google's format sends, as typed shapes. Read from the Python SDK 3.6.1 models, 2026-11-29.

Names are those of `casing.normal`. Tools stay plain objects: they are read one by one. A number may be a text, as in
all of Google's JSON.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gwd.dialects.extensions import (
    ModelName,
    ModelNames,
    Preferred,
    SessionId,
    Shown,
    User,
)

MAX_CAP: Final = 10_000_000
MAX_INPUTS: Final = 2_048
MAX_DIMENSIONS: Final = 65_536
Cap = Annotated[int, Meta(ge=1, le=MAX_CAP)]
Share = Annotated[float, Meta(ge=0, le=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]


class BlobWire(msgspec.Struct, frozen=True, rename="camel"):
    data: Annotated[str, Meta(description="The bytes in base64.")]
    mime_type: Annotated[str, Meta(description="Their media type.")]
    display_name: Annotated[str | None, Meta(description="The file's name.")] = None


class FileDataWire(msgspec.Struct, frozen=True, rename="camel"):
    file_uri: Annotated[
        str, Meta(description="The https address of a file; none of Google's Files API.")
    ]
    mime_type: Annotated[str | None, Meta(description="Its media type.")] = None
    display_name: Annotated[str | None, Meta(description="The file's name.")] = None


class FunctionCallWire(msgspec.Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1, description="The function.")]
    id: Annotated[str | None, Meta(description="The call, as it came.")] = None
    args: Annotated[dict[str, Any] | None, Meta(description="Its arguments.")] = None


class ResultPartWire(msgspec.Struct, frozen=True, rename="camel"):
    inline_data: Annotated[BlobWire | None, Meta(description="A picture or file.")] = None
    file_data: Annotated[FileDataWire | None, Meta(description="A picture or file by address.")] = (
        None
    )


class FunctionResponseWire(msgspec.Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1, description="The function that was called.")]
    id: Annotated[
        str | None,
        Meta(description="The call; without one, the earliest of this name that has no result."),
    ] = None
    response: Annotated[
        dict[str, Any] | None,
        Meta(description="What it gave, under `output`; under `error` what went wrong."),
    ] = None
    parts: Annotated[
        list[ResultPartWire] | None, Meta(description="Pictures and files that it gave.")
    ] = None


class PartWire(msgspec.Struct, frozen=True, rename="camel"):
    text: Annotated[str | None, Meta(description="A text.")] = None
    thought: Annotated[bool | None, Meta(description="True: the text is reasoning.")] = None
    thought_signature: Annotated[
        str | None, Meta(description="The vendor's signature, sent back as it came.")
    ] = None
    inline_data: Annotated[BlobWire | None, Meta(description="A picture or file.")] = None
    file_data: Annotated[FileDataWire | None, Meta(description="A picture or file by address.")] = (
        None
    )
    function_call: Annotated[
        FunctionCallWire | None, Meta(description="A call of an earlier turn, as it came.")
    ] = None
    function_response: Annotated[
        FunctionResponseWire | None, Meta(description="The result of a call.")
    ] = None
    executable_code: Annotated[Any, Meta(description="Not taken.")] = None
    code_execution_result: Annotated[Any, Meta(description="Not taken.")] = None


class ContentWire(msgspec.Struct, frozen=True, rename="camel"):
    role: Annotated[str | None, Meta(description="Who speaks: `user` or `model`.")] = None
    parts: Annotated[list[PartWire] | None, Meta(description="What is said.")] = None


class CallingConfigWire(msgspec.Struct, frozen=True, rename="camel"):
    mode: Annotated[
        str | None,
        Meta(
            description="Whether the model may, must or must not call: AUTO, ANY, NONE, VALIDATED."
        ),
    ] = None
    allowed_function_names: Annotated[
        list[str] | None, Meta(description="The functions among which it chooses.")
    ] = None


class ToolConfigWire(msgspec.Struct, frozen=True, rename="camel"):
    function_calling_config: Annotated[
        CallingConfigWire | None, Meta(description="Whether and which function is called.")
    ] = None


class ThinkingConfigWire(msgspec.Struct, frozen=True, rename="camel"):
    include_thoughts: Annotated[
        bool | None, Meta(description="True puts thoughts into the answer.")
    ] = None
    thinking_budget: Annotated[
        Annotated[int, Meta(ge=-1, le=MAX_CAP)] | None,
        Meta(description="How many tokens it may think; 0 is none, -1 leaves it to the model."),
    ] = None
    thinking_level: Annotated[
        str | None, Meta(description="How much it thinks: MINIMAL, LOW, MEDIUM or HIGH.")
    ] = None


class GenerationConfigWire(msgspec.Struct, frozen=True, rename="camel"):
    candidate_count: Annotated[int | None, Meta(description="Must be 1.")] = None
    stop_sequences: Annotated[list[str] | None, Meta(description="Texts that end the answer.")] = (
        None
    )
    max_output_tokens: Annotated[
        Cap | None, Meta(description="The most tokens of the answer, thoughts among them.")
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, Meta(description="How freely words are chosen.")
    ] = None
    top_p: Annotated[
        Share | None, Meta(description="From which share of likely words they are chosen.")
    ] = None
    top_k: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="From how many likely words they are chosen."),
    ] = None
    seed: Annotated[
        int | None, Meta(description="The same seed gives the same answer, nearly.")
    ] = None
    presence_penalty: Annotated[
        Penalty | None, Meta(description="How much words said before are avoided.")
    ] = None
    frequency_penalty: Annotated[
        Penalty | None, Meta(description="How much repeated words are avoided.")
    ] = None
    response_logprobs: Annotated[
        bool | None, Meta(description="True adds the probability of each token.")
    ] = None
    logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=20)] | None,
        Meta(description="How many alternatives to each token are shown."),
    ] = None
    response_mime_type: Annotated[
        str | None, Meta(description="The form of the answer: text/plain or application/json.")
    ] = None
    response_schema: Annotated[
        dict[str, Any] | None, Meta(description="The schema of the answer, in OpenAPI's form.")
    ] = None
    response_json_schema: Annotated[
        dict[str, Any] | None, Meta(description="The schema of the answer, in JSON Schema.")
    ] = None
    response_modalities: Annotated[list[str] | None, Meta(description="TEXT alone.")] = None
    thinking_config: Annotated[
        ThinkingConfigWire | None, Meta(description="Whether and how much the model thinks.")
    ] = None
    speech_config: Annotated[Any, Meta(description="Not taken.")] = None


class GenerateBody(msgspec.Struct, frozen=True, rename="camel"):
    """The body of generateContent, and of what countTokens holds."""

    contents: Annotated[
        list[ContentWire] | None, Meta(description="The conversation; at least one content.")
    ] = None
    system_instruction: Annotated[
        ContentWire | None, Meta(description="What the model is told first.")
    ] = None
    tools: Annotated[
        list[dict[str, Any]] | None, Meta(description="The functions that the model may call.")
    ] = None
    tool_config: Annotated[
        ToolConfigWire | None, Meta(description="Whether and which function is called.")
    ] = None
    generation_config: Annotated[
        GenerationConfigWire | None, Meta(description="How the answer is made.")
    ] = None
    safety_settings: Annotated[
        list[dict[str, Any]] | None, Meta(description="For vendors that speak this format.")
    ] = None
    cached_content: Annotated[Any, Meta(description="Not taken.")] = None
    service_tier: Annotated[
        str | None, Meta(description="The tier, where an endpoint has a price for it.")
    ] = None
    labels: Annotated[
        dict[str, str] | None,
        Meta(description="Your own names and values: the request's tags, `name=value` each."),
    ] = None
    model: ModelName | None = None
    models: ModelNames | None = None
    provider: Preferred = None
    usage: Shown = None
    session_id: SessionId | None = None
    user: User | None = None


class CountBody(GenerateBody, frozen=True, rename="camel"):
    """The body of countTokens: contents, or a whole request."""

    generate_content_request: Annotated[
        GenerateBody | None, Meta(description="A whole request, in place of the other fields.")
    ] = None


class EmbedBody(msgspec.Struct, frozen=True, rename="camel"):
    content: Annotated[ContentWire | None, Meta(description="The text.")] = None
    output_dimensionality: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_DIMENSIONS)] | None,
        Meta(description="How long the vector shall be, where the model can choose."),
    ] = None
    task_type: Annotated[
        str | None, Meta(description="What the vector is for; for vendors of this format.")
    ] = None
    title: Annotated[
        str | None, Meta(description="The text's title; for vendors of this format.")
    ] = None
    model: ModelName | None = None
    models: ModelNames | None = None
    provider: Preferred = None
    usage: Shown = None
    session_id: SessionId | None = None
    user: User | None = None


class EmbedBatchBody(msgspec.Struct, frozen=True, rename="camel"):
    requests: Annotated[
        Annotated[list[EmbedBody], Meta(min_length=1, max_length=MAX_INPUTS)] | None,
        Meta(description="The texts, each as in embedContent."),
    ] = None
    model: ModelName | None = None
    models: ModelNames | None = None
    provider: Preferred = None
    usage: Shown = None
    session_id: SessionId | None = None
    user: User | None = None
