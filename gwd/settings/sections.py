"""Every setting: its section, type, default and one line of explanation."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct

KEYRING_CREDENTIAL: Final = "gwd-keyring"

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Bytes = Annotated[int, Meta(ge=0, le=1 << 50)]
Large = Annotated[int, Meta(ge=1, le=1_000_000_000_000)]
Positive = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
Strings = tuple[str, ...]


class Server(Struct, frozen=True, kw_only=True):
    """Where the node listens and what it calls itself."""

    host: Annotated[str, Meta(min_length=1, description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[Port, Meta(description="Port to listen on.")] = 8080
    base_url: Annotated[
        str,
        Meta(description="The API's address as clients see it; empty: http(s)://HOST:PORT/api/v1."),
    ] = ""
    app_url: Annotated[
        str,
        Meta(
            description="Where links in mails and errors lead; empty: the node's own page, /app beside the API."
        ),
    ] = ""
    page: Annotated[
        bool, Meta(description="Serve the page at /app; off: there is nothing at that address.")
    ] = True
    cors_origins: Annotated[
        Strings, Meta(description="Origins whose pages may call inference and /models.")
    ] = ("*",)
    tls_cert: Annotated[
        str, Meta(description="Certificate chain (PEM), relative to this file; empty: no TLS.")
    ] = ""
    tls_key: Annotated[str, Meta(description="Private key (PEM) of the certificate.")] = ""
    allow_plain_http: Annotated[
        bool,
        Meta(description="Listen without TLS on an address that is not loopback (behind a proxy)."),
    ] = False
    trusted_proxies: Annotated[
        Strings,
        Meta(
            description='Proxies whose word about the client\'s address counts: addresses, networks, "unix" for the'
            ' socket below; for example ["127.0.0.1", "10.0.0.0/8"].'
        ),
    ] = ()
    client_address_header: Annotated[
        Literal["x-forwarded-for", "forwarded"],
        Meta(
            description="The header in which they pass it on: x-forwarded-for or forwarded; the other is not read."
        ),
    ] = "x-forwarded-for"
    proxy_protocol: Annotated[
        bool,
        Meta(
            description="Connections of trusted proxies begin with a PROXY protocol header, version 1 or 2."
        ),
    ] = False
    path_prefix: Annotated[
        str,
        Meta(description="Path that a proxy leaves in front of /api/v1, such as /gw; empty: none."),
    ] = ""
    unix_socket: Annotated[
        str,
        Meta(description="Unix socket to listen on as well, relative to this file; empty: none."),
    ] = ""
    metrics_host: Annotated[
        str, Meta(min_length=1, description="Address of the separate listener below.")
    ] = "127.0.0.1"
    metrics_port: Annotated[
        int,
        Meta(
            ge=0,
            le=65_535,
            description="Port that has /healthz and /readyz too, and /metrics instead of the main port; 0: none.",
        ),
    ] = 0


class Limits(Struct, frozen=True, kw_only=True):
    """What one request or key may take."""

    default_rate_limit_per_minute: Annotated[
        Positive,
        Meta(description="Requests a key may make in any 60 s; the ceiling for every key."),
    ] = 600
    default_output_bound: Annotated[
        Positive, Meta(description="Output tokens held for a request that names no maximum.")
    ] = 32_768
    request_body_max_bytes: Annotated[
        Positive, Meta(description="Largest inference body, unpacked.")
    ] = 33_554_432
    in_flight_per_key: Annotated[
        Count, Meta(description="Requests a key may have open at once; 0: no cap.")
    ] = 0
    in_flight_per_organization: Annotated[
        Count, Meta(description="Those of an organization; 0: no cap.")
    ] = 512
    in_flight: Annotated[Count, Meta(description="Those of the whole node; 0: no cap.")] = 2_000
    bodies_max_bytes: Annotated[
        Bytes,
        Meta(
            description="Bodies of requests under way, together, as large as they are once read; further ones above"
            " 64 KiB are refused; 0: no cap."
        ),
    ] = 536_870_912
    loop_lag_s: Annotated[
        Seconds,
        Meta(
            description="How late the event loop may be for 3 s before new inference is refused, in seconds."
        ),
    ] = 0.25
    memory_max_bytes: Annotated[
        Bytes,
        Meta(
            description="Memory that the node may use, above 85 % of which new inference is refused; 0: what its"
            " control group or its machine has."
        ),
    ] = 0
    connections: Annotated[
        Count,
        Meta(
            description="Client connections open at once on each listener, and 64 more without inference; 0: no cap."
        ),
    ] = 4_096
    connections_per_address: Annotated[
        Count,
        Meta(
            description="Those of one address, loopback and trusted proxies excepted; of IPv6, of a /64; 0: no cap."
        ),
    ] = 256
    content_log_max_bytes: Annotated[
        Large,
        Meta(
            description="What an organization may have stored of its requests; above it the oldest are erased."
        ),
    ] = 1_073_741_824


class Timeouts(Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    connect_s: Annotated[Seconds, Meta(description="Connecting to an upstream.")] = 5.0
    first_event_s: Annotated[Seconds, Meta(description="First event of an upstream stream.")] = (
        120.0
    )
    idle_s: Annotated[Seconds, Meta(description="Silence between two upstream events.")] = 120.0
    total_s: Annotated[Seconds, Meta(description="A whole request, all attempts.")] = 900.0
    drain_s: Annotated[
        Seconds, Meta(description="Open requests at shutdown before they are ended.")
    ] = 120.0
    report_s: Annotated[
        Seconds, Meta(description="A question to analytics; one that takes longer is refused.")
    ] = 10.0


class Upstream(Struct, frozen=True, kw_only=True):
    """How vendors are reached."""

    allow_http: Annotated[
        bool,
        Meta(
            description="Plain http to any upstream; off: to loopback and private addresses only."
        ),
    ] = False
    proxy: Annotated[
        str,
        Meta(
            description="HTTP proxy for every upstream call, http://[user:password@]host:port; empty: none."
        ),
    ] = ""
    ca_file: Annotated[
        str,
        Meta(
            description="Certificate authorities (PEM) to trust for upstreams beside the system's; empty: those alone."
        ),
    ] = ""
    max_in_flight_per_origin: Annotated[
        Positive,
        Meta(
            description="Calls to one vendor's address at once, of 4000 in all; further ones wait up to 2 s, then go"
            " to the next endpoint."
        ),
    ] = 1_000


class Webhooks(Struct, frozen=True, kw_only=True):
    """Where webhooks may go beyond public https addresses."""

    allow_networks: Annotated[
        Strings,
        Meta(description='Private networks that may be called, for example ["10.0.0.0/8"].'),
    ] = ()
    allow_http: Annotated[bool, Meta(description="Plain http inside those networks.")] = False


class Smtp(Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The mail server; without a host no mail is sent."""

    host: Annotated[str, Meta(description="Mail server; empty: no mail is sent.")] = ""
    port: Annotated[Port, Meta(description="Its port.")] = 587
    username: Annotated[str, Meta(description="User name; empty: no login.")] = ""
    password_ref: Annotated[
        str, Meta(description="Where the password is kept: env:NAME or file:/absolute/path.")
    ] = ""
    tls: Annotated[
        Literal["starttls", "tls", "none"], Meta(description="Encryption: starttls, tls or none.")
    ] = "starttls"
    from_: Annotated[str, Meta(description="Sender address; needed with a host.")] = ""


class Credits(Struct, frozen=True, kw_only=True):
    """Who may book credit."""

    self_service: Annotated[
        bool,
        Meta(
            description="Owner and billing roles may book purchases and refunds; off: the operator alone."
        ),
    ] = True


class StoreFiles(Struct, frozen=True, kw_only=True):
    """File names inside the directory of gwd.toml."""

    database: Annotated[
        str, Meta(min_length=1, description="The database, relative to this file.")
    ] = "gwd.db"
    keyring: Annotated[
        str,
        Meta(
            min_length=1,
            description=f"The key ring, relative to this file; a systemd credential {KEYRING_CREDENTIAL} comes first.",
        ),
    ] = "keyring.json"


class Backup(Struct, frozen=True, kw_only=True):
    """Copies of the database by the clock, each proved; without a directory none is made."""

    directory: Annotated[
        str,
        Meta(
            description="An existing directory for this node's copies alone, best on another disk, relative to this"
            " file; empty: none are made."
        ),
    ] = ""
    every: Annotated[
        str,
        Meta(
            pattern="^[1-9][0-9]{0,3}[mhd]$",
            description="How often, in minutes, hours or days; a copy is overdue after twice as long.",
        ),
    ] = "1h"
    keep: Annotated[
        str,
        Meta(
            pattern="^[1-9][0-9]{0,3}h [0-9]{1,4}d [0-9]{1,4}w$",
            description="Of how many hours, days and weeks (UTC, from Monday) that have a copy the last one is kept.",
        ),
    ] = "24h 14d 8w"


class Logging(Struct, frozen=True, kw_only=True):
    """What is written to standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="Least level written: debug, info, warning or error."),
    ] = "info"
    format: Annotated[
        Literal["text", "json"],
        Meta(description="text, or json: one object a line, with the fields of docs/logs.md."),
    ] = "text"
    requests: Annotated[
        bool,
        Meta(description="A line for each request of inference: ids, model, tokens, cost, times."),
    ] = False


class Otel(Struct, frozen=True, kw_only=True):
    """Traces and metrics for a collector of OpenTelemetry; needs the extra `gwd[otel]`."""

    endpoint: Annotated[
        str,
        Meta(
            description="Where the collector takes OTLP over HTTP, such as http://127.0.0.1:4318; empty: none is told."
        ),
    ] = ""
    headers: Annotated[
        Strings,
        Meta(
            description='Headers for it, each with where its value is kept: ["authorization=env:OTEL_TOKEN"].'
        ),
    ] = ()
    sample_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the traces that begin here which are kept; a client's is kept where it says so.",
        ),
    ] = 1.0
    metrics: Annotated[bool, Meta(description="Send metrics beside traces.")] = True
    propagate: Annotated[
        bool, Meta(description="Tell vendors of the trace, in the header traceparent.")
    ] = False


class Settings(Struct, frozen=True, kw_only=True):
    """All settings; paths are absolute, addresses are complete, texts that are not set are empty."""

    config: Path
    directory: Path
    database: Path
    keyring: Path
    keyring_is_handed_over: bool
    lock: Path
    revocations: Path
    server: Server
    limits: Limits
    timeouts: Timeouts
    upstream: Upstream
    webhooks: Webhooks
    smtp: Smtp
    credits: Credits
    store: StoreFiles
    backup: Backup
    logging: Logging
    otel: Otel


SECTIONS: Final[dict[str, type[Struct]]] = {
    "server": Server,
    "limits": Limits,
    "timeouts": Timeouts,
    "upstream": Upstream,
    "webhooks": Webhooks,
    "smtp": Smtp,
    "credits": Credits,
    "store": StoreFiles,
    "backup": Backup,
    "logging": Logging,
    "otel": Otel,
}


def as_toml(*, commented: bool) -> str:
    """Every setting at its default with one line of explanation, as a gwd.toml; `commented` changes nothing."""
    lines = [
        "# Settings of gwd. Every one can also be given as GWD_<SECTION>_<NAME> in the environment,",
        "# or as GWD_<SECTION>_<NAME>_FILE for a file that holds the value. Unset texts are empty.",
    ]
    for section, kind in SECTIONS.items():
        lines += ["", f"# {kind.__doc__}", f"[{section}]"]
        for key, field in fields_of(section).items():
            lines.append(f"# {description_of(field)}")
            lines.append(f"{'# ' if commented else ''}{key} = {as_toml_value(field.default)}")
    return "\n".join(lines) + "\n"


def fields_of(section: str) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(SECTIONS[section])}


def as_toml_value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(as_toml_value(item) for item in value)}]"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def description_of(field: msgspec.structs.FieldInfo) -> str:
    texts = [item.description for item in get_args(field.type) if isinstance(item, Meta)]
    return next(text for text in texts if text)
