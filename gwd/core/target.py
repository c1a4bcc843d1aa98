"""Where a request may go: an endpoint of the catalog with the credential chosen for it, and one upstream call."""

from typing import Final, Literal

import msgspec

from gwd.core.cost import Price
from gwd.core.extras import Sold
from gwd.core.request import Effort
from gwd.core.vendor_format import Auth, VendorFormat

Replay = Literal["none", "open_loop", "tool_turns"]


class Flags(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What is peculiar about an endpoint; read from the catalog, never guessed from a name.

    thinking_form              which thinking parameter an Anthropic-format model takes
    supported_efforts          reasoning levels the model knows; None: all five
    rejects_sampling           refuses temperature, top_p, top_k
    rejects_thinking_disabled  refuses an explicit `thinking: disabled`
    rejects_disabled_above_high  refuses `thinking: disabled` together with an effort above high
    rejects_forced_tools       refuses tool_choice any and tool
    mandatory_reasoning        always thinks; effort none is refused on exact slugs
    mid_system                 takes `role: system` inside messages
    supports_prefill           takes an assistant message as the last one
    native_json_schema         has structured output of its own (else a forced tool is used)
    takes_image_urls           takes https image URLs (else only bytes are eligible)
    takes_file_urls            takes https file URLs
    developer_role             knows the role `developer` (OpenAI's own reasoning models)
    reasoning_replay           which turns' reasoning an OpenAI-format server wants back: `none`, `open_loop` (the tool
                               calls since the last question), `tool_turns` (every turn with a call); unset:
                               tool_turns where the model reasons, none where `developer_role` is set
    reasoning_field            the field it travels in; unset: reasoning_content
    reasoning_excluded         reports reasoning tokens outside completion_tokens
    usage_unreliable           bill the smaller of reported and estimated prompt tokens
    refused_fields             fields of a request that an OpenAI-format server answers an error to, left out for it;
                               `messages.name` is that of a message
    short_call_ids             takes ids of tool calls of exactly nine letters and digits only
    cache_breakpoints          OpenAI-format model that takes explicit prompt-cache breakpoints
    auto_cache                 Anthropic-format server that caches only what is marked: requests without marks get some
    no_json_with_tools         cannot combine a JSON answer format with function declarations
    trains_on_inputs           its provider may train on what it is sent; left out where a data policy says `deny`
    first_event_s              how long to wait for the first event, where the default is too short
    """

    thinking_form: Literal["none", "budget", "adaptive", "both"] | None = None
    supported_efforts: tuple[Effort, ...] | None = None
    rejects_sampling: bool = False
    rejects_thinking_disabled: bool = False
    rejects_disabled_above_high: bool = False
    rejects_forced_tools: bool = False
    mandatory_reasoning: bool = False
    between_tools: bool = False
    mid_system: bool = False
    supports_prefill: bool | None = None
    native_json_schema: bool | None = None
    takes_image_urls: bool | None = None
    takes_file_urls: bool | None = None
    developer_role: bool | None = None
    reasoning_replay: Replay | None = None
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_details"] | None = None
    reasoning_excluded: bool = False
    usage_unreliable: bool = False
    refused_fields: tuple[str, ...] = ()
    short_call_ids: bool = False
    cache_breakpoints: bool = False
    auto_cache: bool = False
    no_json_with_tools: bool = False
    trains_on_inputs: bool = False
    first_event_s: float | None = None


KEYLESS: Final = "keyless:"
"""How the id of what stands for the key of a provider that takes none begins."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor key ready for use; `repr` never shows the secret. `fee_bps` is set on the owner's own keys (BYOK).

    Without a secret it stands for the key of a provider that takes none: it has no record.
    """

    id: str
    secret: str
    byok: bool = False
    is_required: bool = False
    fee_bps: int = 0

    @property
    def record_id(self) -> str | None:
        """The id of its record."""
        return self.id if self.secret else None

    def __repr__(self) -> str:
        return f"Credential(id={self.id!r}, byok={self.byok})"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint with the credential chosen for this request: all that build, dispatch and settle need to know.

    `auth` is how its provider takes the credential; `sold` is what it is sent of the request's priced extras.
    """

    endpoint_id: str
    model: str
    vendor: str
    provider: str
    provider_name: str
    tag: str
    format: VendorFormat
    base_url: str
    auth: Auth
    headers: dict[str, str]
    upstream_model: str
    context_length: int
    max_completion_tokens: int
    default_max_tokens: int | None
    supported_parameters: frozenset[str]
    flags: Flags
    price: Price
    credential: Credential
    sold: Sold = Sold()
    input_modalities: frozenset[str] = frozenset(("text", "image", "file"))

    @property
    def adapter(self) -> str:
        """The name of the format, which is that of its adapter."""
        return self.format.name


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with the credential chosen for a call that is about no model of its own."""

    format: VendorFormat
    base_url: str
    auth: Auth
    headers: dict[str, str]
    credential: Credential


class UpstreamCall(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP call to a vendor. `headers` hold the credential; `repr` never shows them.

    `dropped` names the request's parameters that this upstream cannot take and that were left out. `output_cap` is the
    limit on the answer that the body holds; None if it holds none. A GET has an empty body.
    """

    method: Literal["GET", "POST"] = "POST"
    url: str
    headers: dict[str, str]
    body: bytes
    stream: bool
    dropped: tuple[str, ...] = ()
    output_cap: int | None = None

    def __repr__(self) -> str:
        return f"UpstreamCall(url={self.url!r}, {len(self.body)} bytes, stream={self.stream})"
