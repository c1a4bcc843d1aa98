"""Which endpoints of a model can take a request, and why the others cannot."""

from collections.abc import Iterable
from math import inf, isinf
from typing import Final

import msgspec

from gwd.catalog.snapshot import Endpoint, Model
from gwd.core.clock import US_PER_S, iso
from gwd.core.errors import (
    ContextLengthExceeded,
    EndpointsThrottled,
    GatewayError,
    NoAvailableEndpoint,
    NoEligibleEndpoints,
    UnsupportedContent,
    UnsupportedTool,
)
from gwd.core.extras import hosted_tools, tool_kind
from gwd.core.request import (
    Embed,
    FilePart,
    ImagePart,
    Part,
    Request,
    ToolResultPart,
    UrlSource,
    VendorFileSource,
)
from gwd.pipeline.plan.media import question_begins, takes_address
from gwd.pipeline.plan.plan_input import PlanInput
from gwd.pipeline.plan.policy import Choice, chosen_by, left_out, what_changes
from gwd.pipeline.plan.resolution import Candidate
from gwd.pipeline.plan.retry_after import with_retry_after
from gwd.pipeline.plan.trace import Reason, Trace
from gwd.pricing.extras import leaves_no_tool, sell
from gwd.pricing.hold import Demand

_VENDOR_FILE: Final[Reason] = "vendor_file"
_LONGEST_WAIT_S: Final = 3_600.0  # a rest beyond it needs the operator: no wait is named
_NO_CREDENTIAL: Final = "no_credential"
_NO_TOOL: Final[Reason] = "unsupported_tool"
_MODALITY: Final[Reason] = "modality"
# Beside these an endpoint that was left out says nothing against the content being what stands in the way.
_CHOSEN: Final = frozenset(
    (_MODALITY, _VENDOR_FILE, "allowed_providers", "ignored_providers", "data_policy", "price")
)
_SOFT: Final = ("tools", "response_format", "verbosity")
_CONVERSATION: Final = {"responses": "input", "gemini": "contents"}
_ESTIMATE_SLACK: Final = 0.9  # an estimate may be ten per cent too high
_SAME: Final = {
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "max_completion_tokens": ("max_tokens", "max_completion_tokens"),
    "reasoning": ("reasoning", "reasoning_effort", "include_reasoning"),
    "reasoning_effort": ("reasoning", "reasoning_effort"),
    "include_reasoning": ("reasoning", "include_reasoning"),
    "logprobs": ("logprobs", "top_logprobs"),
}


class Exclusions:
    """Why endpoints were left out, collected over all models. `closed` is the first that only lacks a usable key.

    `retry_after_s` is the soonest time at which something closed opens; None where there is no time to wait for.
    `choices` are whose choices left endpoints out, as keys of a mapping that keeps their order.
    `unsupported_media` tells per model what of the question it cannot take.
    `keyless` are providers without a key that can be read and was given for their address; of those in `elsewhere` one
    was given for another address, of those in `required` the organization has an own key that must be used.
    `opens_at_us` is when the first price begins of what has none yet by this clock. `trace` is there where somebody
    wants to know it of every endpoint.
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self.trace = trace
        self.reasons: set[str] = set()
        self.choices: dict[Choice, None] = {}
        self.unsupported: set[str] = set()
        self.unsold: set[str] = set()
        self.unsupported_media: dict[str, str] = {}
        self.context_length = 0
        self.unavailable = False
        self.retry_after_s: float | None = None
        self.closed_for: set[str] = set()
        self.closed: tuple[Candidate, Endpoint] | None = None
        self.keyless: set[str] = set()
        self.elsewhere: set[str] = set()
        self.required: set[str] = set()
        self.opens_at_us: int | None = None
        self.now_us = 0

    def choose(self, choice: Choice) -> None:
        """An endpoint that the organization, the key or the request does not want."""
        self.reasons.add(choice.reason)
        self.choices[choice] = None

    def close(self, wait_s: float, reason: str) -> None:
        self.unavailable = True
        self.closed_for.add(reason)
        if isinf(wait_s):
            return  # until somebody edits the key
        soonest = self.retry_after_s
        self.retry_after_s = wait_s if soonest is None else min(soonest, wait_s)

    def narrowed(
        self, fitting: list[Endpoint], kept: list[Endpoint], reason: Reason, lacks: str = ""
    ) -> list[Endpoint]:
        """Those kept, or all where none is."""
        if not kept or self.trace is None:
            return kept or fitting
        self.leave_out_others(fitting, kept, reason, lacks)
        return kept

    def leave_out_others(
        self, fitting: list[Endpoint], kept: list[Endpoint], reason: Reason, lacks: str = ""
    ) -> None:
        """Tell the trace of those that are not kept."""
        if self.trace is not None:
            for endpoint in fitting:
                if endpoint not in kept:
                    self.trace.leave_out(endpoint.id, reason, (lacks,) if lacks else ())

    def not_yet(self, at_us: int, now_us: int) -> None:
        """An endpoint whose first price begins later."""
        self.unavailable = True
        self.now_us = now_us
        self.opens_at_us = at_us if self.opens_at_us is None else min(self.opens_at_us, at_us)
        wait_s = (at_us - now_us) / US_PER_S
        if wait_s <= _LONGEST_WAIT_S:
            self.retry_after_s = min(self.retry_after_s or inf, wait_s)


class Media(msgspec.Struct, kw_only=True):
    """Which kinds of pictures and files stand somewhere in a request."""

    images: bool = False
    image_urls: bool = False
    files: bool = False
    file_urls: bool = False
    vendor_files: bool = False

    def add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, ImagePart):
                self.images = True
                self.image_urls = self.image_urls or isinstance(part.source, UrlSource)
            elif isinstance(part, FilePart):
                self.files = True
                self.file_urls = self.file_urls or isinstance(part.source, UrlSource)
            else:
                continue
            self.vendor_files = self.vendor_files or isinstance(part.source, VendorFileSource)


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the request's content asks of an endpoint: what the question holds it must take, the rest it had better."""

    question: Media
    earlier: Media
    json_schema: bool


def needs_of(request: Request) -> Needs:
    question, earlier = Media(), Media()
    body = request.body
    if isinstance(body, Embed):
        return Needs(question=question, earlier=earlier, json_schema=False)
    begins = question_begins(body.messages)
    for place, message in enumerate(body.messages):
        (question if place >= begins else earlier).add(message.parts)
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                earlier.add(part.parts)
    json_schema = body.output is not None and body.output.kind == "json_schema"
    return Needs(question=question, earlier=earlier, json_schema=json_schema)


def eligible_endpoints(
    candidate: Candidate,
    request: Request,
    demand: Demand,
    needs: Needs,
    plan_input: PlanInput,
    excluded: Exclusions,
) -> list[Endpoint]:
    """The endpoints of a model that can take the request, credentials and health aside."""
    live = candidate.model.live_endpoints
    if not live:
        excluded.unavailable = True
    fitting = []
    for endpoint in live:
        choice = left_out(endpoint, request.preferences, plan_input.policies)
        if choice is not None:
            excluded.choose(choice)
            if excluded.trace is not None:
                excluded.trace.leave_out(endpoint.id, choice.reason)
            continue
        reason = _excluded_by(endpoint, candidate.model, request, demand, needs, plan_input)
        if reason is None:
            fitting.append(endpoint)
            continue
        _note(reason, endpoint, candidate.model, request, needs, plan_input, excluded)
    seeing = [e for e in fitting if _sees(e, candidate.model, request, needs.earlier)]
    fitting = excluded.narrowed(fitting, seeing, "earlier_media")
    for word in _SOFT:
        if word in request.sent_parameters:
            supporting = [e for e in fitting if word in e.supported_parameters]
            fitting = excluded.narrowed(fitting, supporting, "unsupported_parameters", word)
    return fitting


def _note(
    reason: Reason,
    endpoint: Endpoint,
    model: Model,
    request: Request,
    needs: Needs,
    plan_input: PlanInput,
    excluded: Exclusions,
) -> None:
    """Remember why an endpoint was left out, and what a refusal would tell of it."""
    excluded.reasons.add(reason)
    lacks: set[str] = set()
    if reason == "price" and (at_us := endpoint.opens_at_us(plan_input.now_us)) is not None:
        excluded.not_yet(at_us, plan_input.now_us)
    if reason == "context_length":
        excluded.context_length = max(excluded.context_length, endpoint.context_length)
    if reason == "require_parameters":
        unsupported = _unsupported(request, endpoint)
        excluded.unsupported |= unsupported
        price = endpoint.price_at(plan_input.now_us)
        assert price is not None
        unsold = set(sell(request, endpoint.format, price).refused)
        excluded.unsold |= unsold
        lacks = unsupported | unsold
    if reason == _MODALITY:
        what = _unsupported_media(endpoint, model, needs.question)
        excluded.unsupported_media.setdefault(model.id, what)
        lacks = {what}
    if excluded.trace is not None:
        excluded.trace.leave_out(endpoint.id, reason, lacks)


def _excluded_by(
    endpoint: Endpoint,
    model: Model,
    request: Request,
    demand: Demand,
    needs: Needs,
    plan_input: PlanInput,
) -> Reason | None:
    price = endpoint.price_at(plan_input.now_us)
    if price is None:
        return "price"
    if needs.question.vendor_files and endpoint.format.family != request.family:
        return _VENDOR_FILE
    if _unsupported_media(endpoint, model, needs.question):
        return _MODALITY
    if needs.json_schema and "structured_outputs" not in endpoint.supported_parameters:
        return "structured_outputs"
    sold = sell(request, endpoint.format, price)
    if leaves_no_tool(request, sold):
        return _NO_TOOL
    if request.preferences.require_parameters and (sold.refused or _unsupported(request, endpoint)):
        return "require_parameters"
    if demand.generates:
        output = min(demand.output_cap or 1, endpoint.max_completion_tokens)
        if demand.prompt_bound + output > endpoint.context_length and (
            demand.prompt_estimate * _ESTIMATE_SLACK + output > endpoint.context_length
        ):
            return "context_length"
    return None


def _unsupported_media(endpoint: Endpoint, model: Model, media: Media) -> str:
    """What of these pictures and files an endpoint cannot take, in plain words; empty where it takes all."""
    if media.images and "image" not in model.input_modalities:
        return "pictures"
    if media.files and "file" not in model.input_modalities:
        return "files"
    if media.image_urls and not takes_address(endpoint.format, endpoint.flags, "image"):
        return "pictures by their address"
    if media.file_urls and not takes_address(endpoint.format, endpoint.flags, "file"):
        return "files by their address"
    return ""


def _sees(endpoint: Endpoint, model: Model, request: Request, media: Media) -> bool:
    foreign = media.vendor_files and endpoint.format.family != request.family
    return not foreign and not _unsupported_media(endpoint, model, media)


def _unsupported(request: Request, endpoint: Endpoint) -> set[str]:
    """Words the request uses that the endpoint, or its format, lacks under any of their equal names."""
    supported = endpoint.supported_parameters - endpoint.format.no_field_for
    foreign = request.own_fields if endpoint.format.family != request.family else ()
    return {
        word
        for word in request.sent_parameters
        if not any(name in supported for name in _SAME.get(word, (word,)))
    } | set(foreign)


def _refused_tools(request: Request, excluded: Exclusions) -> UnsupportedTool | None:
    """The refusal where nothing but tools that no endpoint runs stands in the way."""
    kinds = dict.fromkeys(tool_kind(str(tool.get("type"))) for tool in hosted_tools(request))
    model = request.models[0]
    if excluded.reasons == {_NO_TOOL}:
        return UnsupportedTool(
            f"no endpoint of `{model}` runs the tools of this request ({', '.join(kinds)}), and without them it would"
            " be answered from nothing: declare a tool of your own, or name another model",
            param="tools",
        )
    is_strict = excluded.reasons == {"require_parameters"} and not excluded.unsupported
    if is_strict and excluded.unsold and excluded.unsold <= kinds.keys():
        return UnsupportedTool(
            f"no endpoint of `{model}` runs {', '.join(sorted(excluded.unsold))}: leave it out, or do without"
            " provider.require_parameters",
            param="tools",
        )
    return None


def none_left(request: Request, demand: Demand, excluded: Exclusions) -> GatewayError:
    if excluded.reasons == {"context_length"}:
        return ContextLengthExceeded(
            f"the request needs about {demand.prompt_estimate} prompt tokens"
            f" and {demand.output_cap or 1} for the answer;"
            f" the longest context of this model is {excluded.context_length}: shorten it or lower max_tokens",
            metadata={
                "context_length": excluded.context_length,
                "prompt_tokens_estimate": demand.prompt_estimate,
                "max_tokens": demand.output_cap,
            },
        )
    if excluded.reasons == {_VENDOR_FILE}:
        return UnsupportedContent(
            f"a `file_id` names a file that another vendor keeps, which `{request.models[0]}` cannot read:"
            " send the file's bytes or its URL"
        )
    refused = _refused_tools(request, excluded)
    if refused is not None:
        return refused
    if excluded.unsupported_media and not excluded.unavailable and excluded.reasons <= _CHOSEN:
        return _unsupported_content(request, excluded)
    chosen = chosen_by(excluded.choices)
    if excluded.reasons and not excluded.unavailable:
        metadata: dict[str, object] = {"excluded_by": sorted(excluded.reasons)}
        why = ", ".join(
            f"{reason} of the {' and the '.join(chosen[reason])}" if reason in chosen else reason
            for reason in sorted(excluded.reasons)
        )
        if unsupported := sorted(excluded.unsupported | excluded.unsold):
            metadata["unsupported_parameters"] = unsupported
            why += f" (unsupported: {', '.join(unsupported)})"
        if chosen:
            metadata["chosen_by"] = chosen
            why += f": {what_changes(excluded.choices)}"
        return NoEligibleEndpoints(
            f"no endpoint of `{request.models[0]}` can take this request; left out by {why}",
            metadata=metadata,
        )
    details: dict[str, object] = {}
    reasons = excluded.reasons | ({_NO_CREDENTIAL} if excluded.keyless else set())
    if reasons:
        details["excluded_by"] = sorted(reasons)
    if chosen:
        details["chosen_by"] = chosen
    wait_s = excluded.retry_after_s
    if excluded.closed_for == {"rate_limited"}:
        # Every eligible endpoint throttled is a 429, also when none had to be asked again to know it.
        return with_retry_after(
            wait_s,
            EndpointsThrottled(
                f"every endpoint of `{request.models[0]}` is throttled; wait and try again",
                metadata=details or None,
            ),
        )
    return with_retry_after(
        wait_s, NoAvailableEndpoint(_why_none(request, excluded), metadata=details or None)
    )


def _unsupported_content(request: Request, excluded: Exclusions) -> UnsupportedContent:
    """A 400 in plain words: agents show it, and take a 404 for a missing model."""
    reported = "; ".join(
        f"`{model}` cannot take {what}" for model, what in excluded.unsupported_media.items()
    )
    by_address = any(what.endswith("address") for what in excluded.unsupported_media.values())
    remedy = "send the bytes as a data URL" if by_address else "leave it out"
    what = (
        "picture"
        if any("pictures" in each for each in excluded.unsupported_media.values())
        else "file"
    )
    return UnsupportedContent(
        f"the last message holds a {what}: {reported}. Please {remedy}, or use a model that takes it",
        param=_CONVERSATION.get(request.dialect, "messages"),
        metadata={"excluded_by": sorted(excluded.reasons)},
    )


def _why_none(request: Request, excluded: Exclusions) -> str:
    """Why no endpoint is left, where it is known and waiting alone may not help."""
    text = f"no endpoint of `{request.models[0]}` is available now"
    if excluded.required:
        return (
            f"{text}: your organization requires its own key for {_named(excluded.required)}, and none of these can be"
            f" used now{_why_no_key(excluded.required, excluded)}; change the key, or no longer require it"
        )
    if excluded.keyless:
        return (
            f"{text}: the gateway has no usable key for"
            f" {_named(excluded.keyless)}{_why_no_key(excluded.keyless, excluded)}, which its operator has to mend;"
            " name another model until then"
        )
    if excluded.opens_at_us is not None:
        return (
            f"{text}: its first price begins at {iso(excluded.opens_at_us)}, and the gateway's clock says"
            f" {iso(excluded.now_us)}; if that is wrong, its operator has to set the clock"
        )
    return f"{text}; try again later or name another model"


def _why_no_key(providers: set[str], excluded: Exclusions) -> str:
    if providers & excluded.elsewhere:
        return " (one was given for another address than that of the endpoint)"
    return ""


def _named(providers: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(providers))
