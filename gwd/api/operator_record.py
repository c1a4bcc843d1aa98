"""What the API shows its operator of the node: how it stands, and what reading again has found."""

from typing import Annotated

import msgspec
from msgspec import Meta

from gwd.api.clock import ClockRecord
from gwd.core.fields import Count, Id, Milliseconds, Moment, Slug, Usd
from gwd.health.record import EndpointHealthRecord
from gwd.ledger import BalanceRecord


class TrafficRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of all organizations in the last hour."""

    last_hour: Annotated[Count, Meta(description="How many were sent to a vendor.")]
    errors: Annotated[Count, Meta(description="How many of these failed or broke off.")]
    error_rate: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Errors for each request; null without a request."),
    ]
    refusals: Annotated[Count, Meta(description="How many the gateway refused itself.")]
    p50_ttft_ms: Annotated[
        Milliseconds | None,
        Meta(description="The median time to the first token; null without output."),
    ]
    in_flight: Annotated[Count, Meta(description="How many are running now.")]
    streams: Annotated[Count, Meta(description="How many of these are streamed.")]


class PaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What ended in the last sixty seconds, of all organizations. It begins anew with the process."""

    requests: Annotated[Count, Meta(description="How many requests that were sent to a vendor.")]
    errors: Annotated[Count, Meta(description="How many of these failed or broke off.")]
    refusals: Annotated[Count, Meta(description="How many the gateway refused itself.")]
    tokens_prompt: Annotated[Count, Meta(description="Tokens in.")]
    tokens_completion: Annotated[Count, Meta(description="Tokens out.")]
    charged: Annotated[Usd, Meta(description="What it was charged.")]


class VitalsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How the process is doing."""

    loop_lag_ms: Annotated[
        float, Meta(ge=0, description="How late the event loop was at worst in the last minute.")
    ]
    writer_queue: Annotated[Count, Meta(description="How many writes wait.")]
    open_holds: Annotated[Count, Meta(description="Holds of all organizations.")]
    connections: Annotated[Count, Meta(description="Open client connections.")]
    disk_free_bytes: Annotated[int, Meta(ge=0, description="Free space beside the database.")]
    deliveries_pending: Annotated[Count, Meta(description="Deliveries of alerts that wait.")]


class HoldsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What running requests hold of the organization's credit."""

    amount: Annotated[Usd, Meta(description="The sum of all holds.")]
    requests: Annotated[Count, Meta(description="How many requests hold something.")]


class BackupsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The proved copies of the database in the directory of `[backup]`."""

    directory: Annotated[str, Meta(description="Where they are.")]
    newest_at: Annotated[
        Moment | None, Meta(description="Which moment the newest is of; null without one.")
    ]
    newest_bytes: Annotated[Count, Meta(description="Its size in bytes; 0 without one.")]
    count: Annotated[Count, Meta(description="How many there are.")]
    overdue: Annotated[
        bool, Meta(description="Whether the newest is older than twice `[backup] every`.")
    ]
    failure: Annotated[
        str | None, Meta(description="Why the last try left no copy; null when it did.")
    ]


class StatusRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The node at a glance: its traffic and endpoints, and the money of the caller's organization."""

    version: Annotated[str, Meta(description="The version of gwd that runs.")]
    base_url: Annotated[str, Meta(description="The address that clients use.")]
    started_at: Annotated[Moment, Meta(description="When the process started.")]
    uptime_s: Annotated[int, Meta(ge=0, description="Seconds since then.")]
    draining: Annotated[
        bool, Meta(description="Whether it is stopping: running requests end, no new ones begin.")
    ]
    quarantine: Annotated[
        str | None,
        Meta(description="Why inference is refused until the books are looked at; null for none."),
    ]
    clock: Annotated[ClockRecord, Meta(description="What is thought of the machine's clock.")]
    backups: Annotated[
        BackupsRecord | None,
        Meta(description="The copies of the database; null where none are made by the clock."),
    ]
    requests: Annotated[TrafficRecord, Meta(description="What the node did in the last hour.")]
    last_minute: Annotated[PaceRecord, Meta(description="What it did in the last minute.")]
    vitals: Annotated[VitalsRecord, Meta(description="How the process is doing.")]
    credits: Annotated[BalanceRecord, Meta(description="The organization's credit.")]
    spent_today: Annotated[Usd, Meta(description="What the organization was charged today, UTC.")]
    holds: Annotated[HoldsRecord, Meta(description="What the organization's requests hold now.")]
    endpoints: Annotated[
        list[EndpointHealthRecord], Meta(description="How each endpoint of the catalog stands.")
    ]
    endpoints_healthy: Annotated[Count, Meta(description="How many of them are healthy.")]
    endpoints_cooling: Annotated[Count, Meta(description="How many of them cool down.")]


class CredentialProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A vendor key that cannot be used."""

    credential_id: Annotated[Id, Meta(description="The id of the credential, pk_….")]
    provider: Annotated[Slug, Meta(description="The provider that takes the key.")]
    message: Annotated[str, Meta(description="Why it cannot be used, and what helps.")]


class ReloadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the node read again: the catalog, vendor keys and the files they are in, the certificate."""

    reloaded_at: Annotated[Moment, Meta(description="When it was read.")]
    credentials: Annotated[Count, Meta(description="How many vendor keys are enabled.")]
    problems: Annotated[
        list[CredentialProblem], Meta(description="Those of them that cannot be used.")
    ]
    certificate_problem: Annotated[
        str | None,
        Meta(
            description="Why the certificate could not be taken; null when it was, or without one."
        ),
    ]
