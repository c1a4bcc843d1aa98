"""GET /metrics: the node's counters in Prometheus text, rendered at each scrape.

Labels are routes, codes, reasons, adapters, providers: closed sets, never a key, a user, a session or an organization.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Final, Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector, CollectorRegistry

from gwd import __version__, ledger
from gwd.alerts import queue
from gwd.api.node import Node
from gwd.api.readiness import unready
from gwd.backups import Standing
from gwd.core.clock import US_PER_S
from gwd.core.counters import Counters, Histogram
from gwd.core.node_clock import STATES
from gwd.health.record import EndpointHealthRecord
from gwd.management import secrets

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
MS_PER_S: Final = 1_000


class Family(msgspec.Struct, frozen=True):
    """One family of samples; counters are served with `_total` behind the name. `alert`: when to look."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    labels: tuple[str, ...] = ()
    alert: str = ""


FAMILIES: Final = (
    Family(
        "gwd_requests",
        "counter",
        "Answers by route and status class",
        labels=("method", "route", "status"),
    ),
    Family(
        "gwd_refusals",
        "counter",
        "Inference requests refused before an upstream was called, by error code",
        labels=("code",),
    ),
    Family(
        "gwd_auth_failures",
        "counter",
        "Requests whose credential was missing, wrong, no longer valid or of the wrong kind",
        labels=("kind",),
    ),
    Family(
        "gwd_upstream_attempts",
        "counter",
        "Upstream calls by how they ended",
        labels=("adapter", "reason"),
    ),
    Family(
        "gwd_upstream_in_flight",
        "gauge",
        "Requests at a provider's endpoints now, with those that wait to be sent",
        labels=("provider",),
        alert="near `[upstream] max_in_flight_per_origin`",
    ),
    Family(
        "gwd_endpoints",
        "gauge",
        "Endpoints of the catalog by how they stand now",
        labels=("provider", "status"),
        alert="`cooling_down`, `outage`, `no_price` or `no_credential` above 0",
    ),
    Family(
        "gwd_endpoint_first_token_seconds",
        "gauge",
        "The median time to the first token in the last minutes, of a provider's slowest endpoint",
        labels=("provider",),
    ),
    Family("gwd_first_token_seconds", "histogram", "From a streamed request to its first output"),
    Family(
        "gwd_overhead_seconds",
        "histogram",
        "What the gateway itself took until an answer of inference began, the waiting for vendors left out",
    ),
    Family(
        "gwd_hosted_tools_dropped", "counter", "Hosted tools that clients named and no upstream has"
    ),
    Family(
        "gwd_tokens",
        "counter",
        "Tokens of answers that ended, by `input` and `output`",
        labels=("kind",),
    ),
    Family(
        "gwd_charged_nano_usd",
        "counter",
        "Charges of all organizations since the ledger began, in billionths of a dollar",
    ),
    Family(
        "gwd_free_nano_usd",
        "gauge",
        "Credit of all organizations that new requests may hold, in billionths of a dollar",
        alert="below what an hour costs",
    ),
    Family(
        "gwd_held_nano_usd",
        "gauge",
        "Credit of all organizations that running requests hold, in billionths of a dollar",
    ),
    Family("gwd_open_reservations", "gauge", "Holds that are neither settled nor released"),
    Family(
        "gwd_oldest_reservation_seconds",
        "gauge",
        "Age of the oldest open hold",
        alert="above `[timeouts] total_s` + 60",
    ),
    Family(
        "gwd_settlement_seconds", "histogram", "From the end of an answer to its durable settlement"
    ),
    Family(
        "gwd_estimate_exceeded", "counter", "Answers that cost more than was held", alert="growing"
    ),
    Family("gwd_usage_estimated", "counter", "Bills by our own count because the vendor gave none"),
    Family(
        "gwd_usage_rejected",
        "counter",
        "Bills with our own count because the vendor's was impossible",
    ),
    Family(
        "gwd_prompts_above_bound",
        "counter",
        "Bills by a vendor's count of a prompt larger than the request can be",
        labels=("provider",),
    ),
    Family(
        "gwd_unpriced_extras",
        "counter",
        "Answers with a tier, speed, region or search that their vendor bills and nobody here is billed for",
        alert="growing",
    ),
    Family(
        "gwd_content_log",
        "counter",
        "Requests of organizations that have theirs stored: stored, or served and not stored",
        labels=("outcome",),
        alert="`failed` or `left_out_disk` growing",
    ),
    Family(
        "gwd_statement_mismatches",
        "counter",
        "Statements that were not shown because they do not add up to the ledger",
        alert="above 0",
    ),
    Family(
        "gwd_writer_queue",
        "gauge",
        "Functions waiting for the writer",
        alert="above 500 for a minute",
    ),
    Family("gwd_writer_batch_size", "histogram", "Functions in one transaction"),
    Family(
        "gwd_writer_commit_seconds",
        "histogram",
        "One transaction of the writer, its functions and its COMMIT",
    ),
    Family("gwd_writer_silence_seconds", "gauge", "Since the writer last answered"),
    Family(
        "gwd_invariant_failures",
        "counter",
        "Transactions that were undone because an invariant did not hold",
        alert="above 0",
    ),
    Family(
        "gwd_alerts_left_out",
        "counter",
        "Alerts and top-ups that failed beside a charge that was kept",
        alert="above 0",
    ),
    Family("gwd_wal_bytes", "gauge", "Size of the write-ahead log"),
    Family("gwd_disk_free_bytes", "gauge", "Free space beside the database", alert="below 1 GiB"),
    Family(
        "gwd_loop_lag_seconds", "histogram", "How late the event loop was, four samples a second"
    ),
    Family(
        "gwd_job_age_seconds",
        "gauge",
        "Since each job by the clock last went well",
        labels=("job",),
        alert="above 7,500",
    ),
    Family("gwd_deliveries_pending", "gauge", "Deliveries of alerts that wait"),
    Family(
        "gwd_oldest_delivery_seconds",
        "gauge",
        "How long the delivery has been due that waits longest",
        alert="above 300",
    ),
    Family("gwd_in_flight", "gauge", "Inference requests under way"),
    Family(
        "gwd_body_bytes",
        "gauge",
        "Bodies of inference requests under way, and bodies of any that are not all here",
        labels=("state",),
    ),
    Family(
        "gwd_shed",
        "counter",
        "Inference refused because the node, or the organization, had too much under way, by cause",
        labels=("cause",),
        alert="growing for a minute",
    ),
    Family(
        "gwd_shedding",
        "gauge",
        "1 while new inference is refused for this cause",
        labels=("cause",),
        alert="1 for a minute",
    ),
    Family(
        "gwd_memory_share", "gauge", "Memory in use, of what the node may use", alert="above 0.8"
    ),
    Family("gwd_connections", "gauge", "Open client connections"),
    Family(
        "gwd_connections_cut",
        "counter",
        "Connections refused or ended by the HTTP front",
        labels=("reason",),
    ),
    Family("gwd_heads_refused", "counter", "Requests that were no strict HTTP", labels=("reason",)),
    Family(
        "gwd_spans",
        "counter",
        "Spans for the collector of `[otel]`, by `sent`, `queue_full` and `export_failed`",
        labels=("outcome",),
    ),
    Family("gwd_ready", "gauge", "1 when /readyz answers 200", alert="0 for a minute"),
    Family("gwd_quarantine", "gauge", "1 when the ledger was found not to add up", alert="above 0"),
    Family(
        "gwd_clock_doubted",
        "gauge",
        "1 when the machine's clock is in doubt, 2 when it is not followed at all",
        alert="above 0",
    ),
    Family(
        "gwd_secrets_left",
        "gauge",
        "Stored secrets that another key of the ring than the active one seals",
        alert="above 0 for ten minutes",
    ),
    Family(
        "gwd_keyring_age_seconds",
        "gauge",
        "Since the active key of the ring was made; 0 where that is not known",
        alert="above what your rules allow",
    ),
    Family(
        "gwd_backup_age_seconds",
        "gauge",
        "Age of the newest proved copy of the database; absent without `[backup] directory`, +Inf without a copy",
        alert="above twice `[backup] every`",
    ),
    Family("gwd_backup_bytes", "gauge", "Size of the newest proved copy"),
    Family("gwd_backups", "gauge", "Proved copies in `[backup] directory`"),
    Family("gwd_uptime_seconds", "gauge", "Since the node started"),
    Family("gwd_build_info", "gauge", "The version", labels=("version",)),
)
"""Everything this node says of itself; a family that is not here cannot be served."""
_BY_NAME: Final = {family.name: family for family in FAMILIES}


class _Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be looked up for a scrape."""

    holds: ledger.OpenHolds
    money: ledger.Totals
    endpoints: list[EndpointHealthRecord]
    waiting: queue.Waiting
    wal_bytes: int
    now_us: int
    in_flight: Mapping[str, int]
    secrets_left: int


async def render(node: Node) -> bytes:
    """The whole page."""
    observed = _Observed(
        holds=await node.store.read(ledger.open_holds),
        money=await node.store.read(ledger.totals),
        endpoints=await node.state.endpoint_records(node.clock.now_us()),
        waiting=await node.store.read(queue.waiting, now_us=node.clock.now_us()),
        wal_bytes=_size(f"{node.store.path}-wal"),
        now_us=node.clock.now_us(),
        in_flight=await node.state.in_flight(),
        secrets_left=await node.store.read(secrets.left, node.vault.ring),
    )
    page = generate_latest(_NodeCollector(node, observed))
    return page + generate_latest(PROCESS)


class _NodeCollector(Collector):
    """One scrape."""

    def __init__(self, node: Node, observed: _Observed) -> None:
        self._node = node
        self._observed = observed

    def collect(self) -> Iterator[Metric]:
        counters = self._node.counters
        yield from _traffic(counters)
        yield from _endpoints(self._observed.endpoints)
        yield from _money(counters, self._observed)
        yield from self._store()
        yield from self._state()

    def _store(self) -> Iterator[Metric]:
        store, vitals = self._node.store, self._node.vitals
        yield _gauge("gwd_writer_queue", store.queued)
        yield _histogram("gwd_writer_batch_size", store.counters.batch)
        yield _histogram(
            "gwd_writer_commit_seconds",
            store.counters.commit,
        )
        yield _gauge(
            "gwd_writer_silence_seconds",
            max(0.0, self._node.clock.monotonic_s() - vitals.writer_seen_s),
        )
        yield _counter(
            "gwd_invariant_failures",
            store.counters.invariant_failures,
        )
        yield _counter(
            "gwd_alerts_left_out",
            store.tolerated,
        )
        yield _gauge("gwd_wal_bytes", self._observed.wal_bytes)
        yield _gauge("gwd_disk_free_bytes", vitals.disk_free_bytes)

    def _state(self) -> Iterator[Metric]:
        node = self._node
        yield _histogram(
            "gwd_loop_lag_seconds",
            node.vitals.loop_lag,
        )
        now_s = node.clock.monotonic_s()
        ages = {job: max(0.0, now_s - at_s) for job, at_s in node.vitals.jobs_ran_s.items()}
        yield _gauges("gwd_job_age_seconds", ages)
        yield _gauge("gwd_deliveries_pending", self._observed.waiting.count)
        yield _gauge("gwd_oldest_delivery_seconds", self._observed.waiting.oldest_s)
        yield _gauge("gwd_in_flight", len(node.line.live))
        yield _gauges(
            "gwd_body_bytes",
            {"under_way": node.load.body_bytes, "arriving": node.counters.arriving_bytes},
        )
        yield _labelled("gwd_shed", node.counters.shed)
        vitals = node.vitals
        yield _gauges(
            "gwd_shedding",
            {"loop_lag": int(vitals.lag.is_high), "memory": int(vitals.memory.is_high)},
        )
        yield _gauge("gwd_memory_share", vitals.memory.value)
        yield _gauges("gwd_upstream_in_flight", self._observed.in_flight)
        yield _gauge("gwd_connections", node.counters.connections)
        yield _labelled(
            "gwd_connections_cut",
            node.counters.connections_cut,
        )
        yield _labelled(
            "gwd_heads_refused",
            node.counters.heads_refused,
        )
        yield _labelled("gwd_spans", node.counters.spans)
        yield _gauge("gwd_ready", int(unready(node) is None))
        yield _gauge(
            "gwd_quarantine",
            int(node.status.quarantine is not None),
        )
        yield _gauge(
            "gwd_clock_doubted",
            STATES.index(node.clock.standing().state),
        )
        yield _gauge("gwd_secrets_left", self._observed.secrets_left)
        ring = node.vault.ring
        made_us = ring.made_us.get(ring.active, self._observed.now_us)
        yield _gauge("gwd_keyring_age_seconds", max(0, self._observed.now_us - made_us) / US_PER_S)
        yield from _backups(node.backups, self._observed.now_us)
        yield _gauge(
            "gwd_uptime_seconds",
            max(0, self._observed.now_us - node.status.started_us) / US_PER_S,
        )
        build = _BY_NAME["gwd_build_info"]
        about = GaugeMetricFamily(build.name, build.text, labels=build.labels)
        about.add_metric([__version__], 1)
        yield about


def _traffic(counters: Counters) -> Iterator[Metric]:
    yield _tuples(
        "gwd_requests",
        [
            ((method, route, f"{digit}xx"), count)
            for (method, route, digit), count in _by_route(counters.requests).items()
        ],
    )
    yield _labelled(
        "gwd_refusals",
        counters.refusals,
    )
    yield _labelled(
        "gwd_auth_failures",
        counters.auth_failures,
    )
    yield _tuples("gwd_upstream_attempts", list(counters.attempts.items()))
    yield _histogram(
        "gwd_first_token_seconds",
        counters.first_token,
    )
    yield _histogram(
        "gwd_overhead_seconds",
        counters.overhead,
    )
    yield _labelled("gwd_content_log", counters.content_log)
    yield _counter(
        "gwd_hosted_tools_dropped",
        counters.hosted_tools_dropped,
    )


def _endpoints(endpoints: list[EndpointHealthRecord]) -> Iterator[Metric]:
    standing: Counter[tuple[str, ...]] = Counter((each.provider, each.status) for each in endpoints)
    yield _gauges_of("gwd_endpoints", standing)
    slowest: dict[tuple[str, ...], float] = {}
    for each in endpoints:
        if each.p50_ttft_ms is not None:
            seconds = each.p50_ttft_ms / MS_PER_S
            slowest[each.provider,] = max(seconds, slowest.get((each.provider,), 0.0))
    yield _gauges_of("gwd_endpoint_first_token_seconds", slowest)


def _money(counters: Counters, observed: _Observed) -> Iterator[Metric]:
    yield _labelled("gwd_tokens", counters.tokens)
    yield _counter("gwd_charged_nano_usd", observed.money.spent_nano)
    yield _gauge("gwd_free_nano_usd", observed.money.free_nano)
    yield _gauge("gwd_held_nano_usd", observed.money.held_nano)
    holds = observed.holds
    age_us = observed.now_us - holds.oldest_us if holds.oldest_us is not None else 0
    yield _gauge("gwd_open_reservations", holds.count)
    yield _gauge(
        "gwd_oldest_reservation_seconds",
        max(0, age_us) / US_PER_S,
    )
    yield _histogram(
        "gwd_settlement_seconds",
        counters.settlement,
    )
    yield _counter("gwd_estimate_exceeded", counters.estimates_exceeded)
    yield _counter(
        "gwd_usage_estimated",
        counters.usage_estimated,
    )
    yield _counter(
        "gwd_usage_rejected",
        counters.usage_rejected,
    )
    yield _labelled(
        "gwd_prompts_above_bound",
        counters.prompts_above_bound,
    )
    yield _counter(
        "gwd_unpriced_extras",
        counters.unpriced_extras,
    )
    yield _counter("gwd_statement_mismatches", counters.statement_mismatches)


def _backups(standing: Standing | None, now_us: int) -> Iterator[Metric]:
    if standing is None:
        for name in ("gwd_backup_age_seconds", "gwd_backup_bytes", "gwd_backups"):
            yield _gauges(name, {})
        return
    age_us, newest = standing.age_us(now_us), standing.newest
    yield _gauge("gwd_backup_age_seconds", inf if age_us is None else age_us / US_PER_S)
    yield _gauge("gwd_backup_bytes", 0 if newest is None else newest.size_bytes)
    yield _gauge("gwd_backups", standing.count)


def _by_route(
    requests: Mapping[tuple[str, str, int], int],
) -> dict[tuple[str, str, int], int]:
    """Both base paths lead to one route: `/api/v1/models` and `/v1/models` are `/models`."""
    merged: dict[tuple[str, str, int], int] = {}
    for (method, path, digit), count in list(requests.items()):
        below = path.removeprefix("api/")
        route = below.removeprefix("v1/") if below.startswith("v1/") else path
        shown = f"/{route}".replace(":str>", ">").replace(":path>", ">")
        name = (method, shown, digit) if method else ("other", "unmatched", digit)
        merged[name] = merged.get(name, 0) + count
    return merged


def _counter(name: str, value: float) -> Metric:
    return CounterMetricFamily(name, _BY_NAME[name].text, value=value)


def _gauge(name: str, value: float) -> Metric:
    return GaugeMetricFamily(name, _BY_NAME[name].text, value=value)


def _gauges(name: str, values: Mapping[str, float]) -> Metric:
    return _gauges_of(name, {(label,): value for label, value in values.items()})


def _gauges_of(name: str, values: Mapping[tuple[str, ...], float]) -> Metric:
    family = _BY_NAME[name]
    gauge = GaugeMetricFamily(name, family.text, labels=family.labels)
    for labels, value in values.items():
        gauge.add_metric(labels, value)
    return gauge


def _labelled(name: str, values: Mapping[str, int]) -> Metric:
    return _tuples(name, [((value,), count) for value, count in list(values.items())])


def _tuples(name: str, values: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    family = _BY_NAME[name]
    counter = CounterMetricFamily(name, family.text, labels=family.labels)
    for labels, count in values:
        counter.add_metric(labels, count)
    return counter


def _histogram(name: str, histogram: Histogram) -> Metric:
    running, buckets = 0, []
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        running += count
        buckets.append(("+Inf" if bound == float("inf") else str(bound), float(running)))
    text = _BY_NAME[name].text
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram.total)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


PROCESS: Final = CollectorRegistry()
ProcessCollector(registry=PROCESS)
