"""What the fields of providers, models and endpoints may hold: each said once, for POST and PATCH alike."""

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from gwd.catalog.price_body import Pricing, PricingTier
from gwd.core.inputs import MomentInput, NumberInput
from gwd.core.vendor_format import Auth

SLUG: Final = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")
MODEL: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
ALIAS: Final = re.compile(r"[A-Za-z0-9~][A-Za-z0-9._/-]*")
TAG: Final = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*(?:/[a-z0-9]+(?:[-_.][a-z0-9]+)*)?")
MAX_NAME: Final = 256
LEAST_WEIGHT: Final = Decimal("0.000000001")
MAX_WEIGHT: Final = Decimal(1_000_000_000_000)
MAX_TOKENS: Final = 1_000_000_000
Modality = Literal["text", "image", "file", "audio", "video", "embeddings"]

# Texts that are read with every request or sent with every call are bounded.
_NAMED: Final = {"minLength": 1, "maxLength": MAX_NAME}
Tokens = Annotated[int, Meta(ge=1, le=MAX_TOKENS)]
Aliases = Annotated[
    list[str], Meta(max_length=64, description="Other names by which it can be asked for.")
]
Parameters = Annotated[
    list[Annotated[str, Meta(max_length=MAX_NAME)]],
    Meta(max_length=256, description="The parameters of requests that it takes."),
]
InputModalities = Annotated[list[Modality], Meta(max_length=16, description="What it can be sent.")]
OutputModalities = Annotated[list[Modality], Meta(max_length=16, description="What it puts out.")]
Tiers = Annotated[
    list[PricingTier],
    Meta(max_length=32, description="Other prices for requests with longer prompts."),
]
Headers = Annotated[
    dict[str, str],
    Meta(
        max_length=32,
        description="Headers for every call of the vendor; never a credential.",
    ),
]
FlagsInput = Annotated[
    dict[str, Any],
    Meta(
        description="What is peculiar about it: facts that an adapter has to know, by their names."
    ),
]
Slug = Annotated[
    str,
    Meta(
        description="Its short name, which stays.",
        extra_json_schema={"pattern": f"^{SLUG.pattern}$", "maxLength": MAX_NAME},
    ),
]
Name = Annotated[str, Meta(description="What people call it.", extra_json_schema=_NAMED)]
BaseUrl = Annotated[
    str,
    Meta(
        description="The address of the vendor's API; https, or http to this machine and private networks. A query is"
        " kept with every call, such as `?api-version=2024-10-21`; it never holds a credential."
    ),
]
Adapter = Annotated[
    str,
    Meta(
        description="The format that the vendor speaks, such as `openai_chat`; one that is not known is refused"
        " with the names of those that are."
    ),
]
AuthInput = Annotated[
    Auth,
    Meta(
        description="How it takes its key: `bearer` is `authorization: Bearer KEY`; `api-key`, `x-api-key` and"
        " `x-goog-api-key` are headers of that name; `none` sends no key and needs none. Absent is the adapter's way."
    ),
]
Disabled = Annotated[bool, Meta(description="Whether it is left out until it is enabled again.")]
ModelId = Annotated[
    str,
    Meta(
        description="Its id, vendor/model, which stays.",
        extra_json_schema={"pattern": f"^{MODEL.pattern}$", "maxLength": MAX_NAME},
    ),
]
Vendor = Annotated[str, Meta(description="Who makes the model.", extra_json_schema=_NAMED)]
ContextLength = Annotated[
    Tokens, Meta(description="How many tokens prompt and answer may have together.")
]
CompletionTokens = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_TOKENS,
        description="How many tokens an answer may have; 0 for a model that makes embeddings.",
    ),
]
DefaultTokens = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_TOKENS,
        description="How many tokens an answer may have that asks for no number. Null is the node's own bound.",
    ),
]
ModelPricing = Annotated[
    Pricing | None, Meta(description="Its prices, where no endpoint has its own.")
]
Description = Annotated[str, Meta(description="What it is good for.")]
Family = Annotated[
    str, Meta(description="A name that leads to the newest model of the family, with ~ before it.")
]
Moderated = Annotated[bool, Meta(description="Whether the vendor looks through requests.")]
Released = Annotated[MomentInput, Meta(description="When it came out.")]
Deprecated = Annotated[
    MomentInput, Meta(description="From when on answers say that it will be retired.")
]
Retired = Annotated[
    MomentInput, Meta(description="From when on it is no longer served, and its successor is.")
]
Successor = Annotated[str, Meta(description="The model that replaces it, by id.")]
Accept = Annotated[
    bool,
    Meta(
        description="Takes a price that looks like a slip: more than tenfold, or above 0.001 USD a token."
    ),
]
Effective = Annotated[
    MomentInput,
    Meta(description="When a new price takes effect. Absent is now."),
]
UpstreamModel = Annotated[
    str, Meta(description="The vendor's own name of the model.", extra_json_schema=_NAMED)
]
Tag = Annotated[
    str,
    Meta(
        description="The endpoint's name in requests and records.",
        extra_json_schema={"pattern": f"^{TAG.pattern}$", "maxLength": MAX_NAME},
    ),
]
OwnBaseUrl = Annotated[BaseUrl, Meta(description="Its own address. Null is the provider's.")]
OwnPricing = Annotated[Pricing | None, Meta(description="Its own prices. Null are the model's.")]
OwnContextLength = Annotated[
    Tokens,
    Meta(description="How many tokens prompt and answer may have here. Null is the model's."),
]
OwnCompletionTokens = Annotated[
    Tokens, Meta(description="How many tokens an answer may have here. Null is the model's.")
]
OwnParameters = Annotated[
    Parameters, Meta(description="The parameters that it takes. Null are the model's.")
]
Weight = Annotated[
    NumberInput,
    Meta(
        description="Its share of the requests that are balanced between endpoints, against the others' weights.",
        extra_json_schema={"minimum": float(LEAST_WEIGHT), "maximum": float(MAX_WEIGHT)},
    ),
]
