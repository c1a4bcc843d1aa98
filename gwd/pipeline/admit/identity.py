"""What is known of a generation from its first moment: who asked what, when, and under which id."""

from typing import Any

import msgspec

from gwd.activity.row import GenerationRow
from gwd.core.caller import Caller
from gwd.core.errors import GatewayError
from gwd.core.request import DialectName, Sender
from gwd.core.spender import Spender
from gwd.core.trace_context import TraceContext


class GenerationIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a generation's record that no later step changes, and `trace`, which is not kept."""

    generation_id: str
    organization_id: str
    workspace_id: str | None
    key_id: str
    family_id: str
    dialect: DialectName
    requested_model: str | None
    stream: bool
    sender: Sender = msgspec.field(name="tags")  # its name in the database
    dropped_tools: tuple[str, ...]
    request_id: str
    user_agent: str | None
    created_us: int
    trace: TraceContext | None = None

    @property
    def spender(self) -> Spender:
        """Whose limits count, and where what it costs is counted."""
        return Spender(
            organization_id=self.organization_id,
            workspace_id=self.workspace_id,
            family_id=self.family_id,
            user=self.sender.user_id,
            tags=self.sender.tags,
        )


def identity_of(
    caller: Caller,
    *,
    generation_id: str,
    dialect: DialectName,
    requested_model: str | None = None,
    stream: bool = False,
    sender: Sender | None = None,
    tags: tuple[str, ...] = (),
    dropped_tools: tuple[str, ...] = (),
    request_id: str,
    user_agent: str | None,
    created_us: int,
    trace: TraceContext | None = None,
) -> GenerationIdentity:
    """The identity of a request of a caller whose key belongs to an organization; `tags` are the key's own."""
    sender = sender or Sender()
    if tags:
        sender = msgspec.structs.replace(sender, tags=tuple(dict.fromkeys(sender.tags + tags)))
    return GenerationIdentity(
        generation_id=generation_id,
        organization_id=caller.organization_id,
        workspace_id=caller.workspace_id,
        key_id=caller.key_id,
        family_id=caller.family_id,
        dialect=dialect,
        requested_model=requested_model,
        stream=stream,
        sender=sender,
        dropped_tools=dropped_tools,
        request_id=request_id,
        user_agent=user_agent,
        created_us=created_us,
        trace=trace,
    )


def refused_row(identity: GenerationIdentity, error: GatewayError, now_us: int) -> GenerationRow:
    """The record of a refusal: no tokens, no cost, the error that the client saw."""
    return GenerationRow(
        **identity_columns(identity),
        status="refused",
        **error_columns(error),
        latency_ms=max(0, now_us - identity.created_us) // 1_000,
        settled_at=max(now_us, identity.created_us),
    )


def identity_columns(identity: GenerationIdentity) -> dict[str, Any]:
    """The columns of a generation that come from its identity."""
    return {
        "id": identity.generation_id,
        "organization_id": identity.organization_id,
        "workspace_id": identity.workspace_id,
        "key_id": identity.key_id,
        "family_id": identity.family_id,
        "user_tag": identity.sender.user_id,
        "session_id": identity.sender.session_id,
        "referer": identity.sender.referer,
        "title": identity.sender.title,
        "tags": _list(identity.sender.tags),
        "dialect": identity.dialect,
        "requested_model": identity.requested_model,
        "streamed": identity.stream,
        "request_id": identity.request_id,
        "user_agent": identity.user_agent,
        "dropped_tools": _list(identity.dropped_tools),
        "created_at": identity.created_us,
    }


def _list(words: tuple[str, ...]) -> str | None:
    """As JSON, None for an empty one."""
    return msgspec.json.encode(words).decode() if words else None


def error_columns(error: GatewayError | None) -> dict[str, Any]:
    """The columns of a generation that say what the client was told."""
    if error is None:
        return {}
    return {
        "error_status": error.status,
        "error_code": error.code,
        "error_message": error.message,
    }
