"""The one internal request: what every dialect parses to and every adapter builds from.

Unknown fields a client sent travel in `extras`; they are sent on only to an upstream whose family equals
`Request.family`. The caller's cache marks live on the parts, so no translation forgets them.
"""

from typing import Any, Final, Literal, assert_never

import msgspec

DialectName = Literal[
    "chat_completions", "messages", "responses", "gemini", "completions", "embeddings"
]
Family = Literal[
    "openai_chat", "anthropic_messages", "openai_responses", "gemini", "openai_embeddings"
]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheTtl = Literal["5m", "1h"]
Extras = dict[str, Any]

EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class UrlSource(msgspec.Struct, frozen=True, kw_only=True, tag="url"):
    url: str


class InlineSource(msgspec.Struct, frozen=True, kw_only=True, tag="inline"):
    """Bytes the client sent along: standard base64 without line breaks, and the media type without parameters."""

    media_type: str
    data: str


class VendorFileSource(msgspec.Struct, frozen=True, kw_only=True, tag="vendor_file"):
    """A file stored in a vendor's own account; only that vendor's family can use it."""

    file_id: str


Source = UrlSource | InlineSource | VendorFileSource


class TextPart(msgspec.Struct, frozen=True, kw_only=True, tag="text", omit_defaults=True):
    text: str
    cache: CacheTtl | None = None
    extras: Extras | None = None


class ImagePart(msgspec.Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    source: Source
    detail: str | None = None
    cache: CacheTtl | None = None
    extras: Extras | None = None


class FilePart(msgspec.Struct, frozen=True, kw_only=True, tag="file", omit_defaults=True):
    source: Source
    filename: str | None = None
    cache: CacheTtl | None = None
    extras: Extras | None = None


class ToolCallPart(msgspec.Struct, frozen=True, kw_only=True, tag="tool_call", omit_defaults=True):
    """A call the assistant made; `arguments` is JSON text exactly as the vendor or the client wrote it."""

    call_id: str
    name: str
    arguments: str
    cache: CacheTtl | None = None
    extras: Extras | None = None


class ToolResultPart(
    msgspec.Struct, frozen=True, kw_only=True, tag="tool_result", omit_defaults=True
):
    """What a tool answered; parts are text, images or files."""

    call_id: str
    parts: tuple[TextPart | ImagePart | FilePart, ...]
    is_error: bool = False
    cache: CacheTtl | None = None
    extras: Extras | None = None


class ReasoningPart(msgspec.Struct, frozen=True, kw_only=True, tag="reasoning", omit_defaults=True):
    """Reasoning of an earlier turn or of this answer.

    `signature` is what the vendor wants back unread (Anthropic signature, OpenAI encrypted content); `redacted` is the
    data of a block whose text the vendor hides; `format` names the family that made it and may read it back;
    `summary` tells a summary from the raw text; `item_id` is the vendor's name for the item.
    """

    text: str = ""
    signature: str | None = None
    redacted: str | None = None
    format: str = "unknown"
    summary: bool = False
    item_id: str | None = None
    extras: Extras | None = None


class RefusalPart(msgspec.Struct, frozen=True, kw_only=True, tag="refusal"):
    text: str


Part = TextPart | ImagePart | FilePart | ToolCallPart | ToolResultPart | ReasoningPart | RefusalPart


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn. Role `tool` holds ToolResultParts; `user` may hold them too (a messages client mixes them with text).

    `developer` tells a developer message from a system one where a vendor knows the difference.
    """

    role: Literal["system", "user", "assistant", "tool"]
    parts: tuple[Part, ...]
    name: str | None = None
    developer: bool = False
    extras: Extras | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function the model may call. `parameters` is a JSON schema; None means no parameters.

    A `custom` tool takes free text instead: it is offered as a function with one string property `input`, and its
    calls carry `{"input": "…"}` in the internal form whatever the vendor speaks. `grammar` is its input format.
    A `deferred` tool is one the model has yet to search for: only a vendor that defers tools itself is sent it.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    custom: bool = False
    grammar: dict[str, Any] | None = None
    deferred: bool = False
    cache: CacheTtl | None = None
    extras: Extras | None = None


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`allowed` limits the choice to the named tools (mode auto or required); `name` forces one (mode named)."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None
    allowed: tuple[str, ...] | None = None
    parallel: bool | None = None


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


class Reasoning(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`enabled` None means the client left it to the model; `adaptive` means on, with the depth left to the model."""

    enabled: bool | None = None
    effort: Effort | None = None
    max_tokens: int | None = None
    exclude: bool = False
    adaptive: bool = False


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class Generate(msgspec.Struct, frozen=True, kw_only=True, tag="generate", omit_defaults=True):
    """`logprobs` is how many alternatives to each token are wanted beside its own probability; None: none of it."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    sampling: Sampling = Sampling()
    reasoning: Reasoning | None = None
    output: OutputFormat | None = None
    verbosity: str | None = None
    logprobs: int | None = None
    max_output_tokens: int | None = None

    @property
    def tools_in_sight(self) -> tuple[Tool, ...]:
        """The tools for a vendor that cannot defer any."""
        if not self.tools:
            return ()
        return tuple(tool for tool in self.tools if not tool.deferred)

    @property
    def cache_marks(self) -> set[CacheTtl | None]:
        """How long the client's marks want the prompt kept; None is in it too, for what bears no mark."""
        marks: set[CacheTtl | None] = {tool.cache for tool in self.tools}
        for message in self.messages:
            for part in message.parts:
                match part:
                    case TextPart() | ImagePart() | FilePart() | ToolCallPart():
                        marks.add(part.cache)
                    case ToolResultPart():
                        marks.add(part.cache)
                        marks.update([inner.cache for inner in part.parts])
                    case ReasoningPart() | RefusalPart():
                        pass
                    case _:
                        assert_never(part)
        return marks


class Embed(msgspec.Struct, frozen=True, kw_only=True, tag="embed", omit_defaults=True):
    """Texts or token lists to embed, in the client's order."""

    inputs: tuple[str | tuple[int, ...], ...]
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] = "float"


class Preferences(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `provider` extension of a request."""

    order: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    allow_fallbacks: bool = True
    sort: Literal["price", "throughput", "latency"] | None = None
    partition: Literal["model", "none"] = "model"
    require_parameters: bool = False
    data_collection: Literal["allow", "deny"] = "allow"


class Sender(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who and what the client says it is; cleaned text of at most 256 characters each, recorded, never forwarded.

    `tags` are those of the request; once it is admitted those of its key and workspace are among them.
    """

    session_id: str | None = None
    user_id: str | None = None
    referer: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One client request, whatever dialect it came in.

    `models` holds the primary model first, then the fallbacks, each as the client wrote it (suffix included); it is
    empty where the client named none, until the model of its workspace stands there.
    `sent_parameters` are the words of `supported_parameters` that the client's body really used.
    `vendor_headers` are client headers that belong to a vendor family (anthropic-beta, anthropic-version).
    `hosted_tools` are the tools that the client wants its vendor to run, where they stand apart from its own, and
    `dropped_tools` their types: what is recorded unless an endpoint runs them.
    `own_fields` are the paths of fields in `extras` that are dropped by every upstream of another family, and recorded
    so; dialects whose clients expect their unknown fields to be ignored name none.
    `body_bytes` is the size of the client's body after decompression: the ceiling of any token count.
    `replay_reasoning` is what a vendor said of readable reasoning of earlier turns when it refused a call: it wants
    all of it, or none; None before anything was refused.
    """

    dialect: DialectName
    family: Family
    models: tuple[str, ...]
    body: Generate | Embed
    preferences: Preferences = Preferences()
    stream: bool = False
    include_cost: bool = False
    include_receipt: bool = False
    sender: Sender = Sender()
    sent_parameters: frozenset[str] = frozenset()
    hosted_tools: tuple[Extras, ...] = ()
    dropped_tools: tuple[str, ...] = ()
    vendor_headers: dict[str, str] = {}
    extras: Extras | None = None
    own_fields: tuple[str, ...] = ()
    body_bytes: int = 0
    replay_reasoning: bool | None = None
