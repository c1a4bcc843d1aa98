"""GET /metrics: the node's counters in Prometheus text, turned into it only when somebody asks.

Labels are routes, codes, reasons and adapters: closed sets, never a key, a user, a session or an organization.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

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
from gwd.api.node import Node
from gwd.api.readiness import unready
from gwd.core.clock import US_PER_S
from gwd.core.counters import Counters, Histogram
from gwd.core.node_clock import STATES

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class _Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be looked up for a scrape."""

    holds: ledger.OpenHolds
    wal_bytes: int
    now_us: int


async def render(node: Node) -> bytes:
    """The whole page."""
    observed = _Observed(
        holds=await node.store.read(ledger.open_holds),
        wal_bytes=_size(f"{node.store.path}-wal"),
        now_us=node.clock.now_us(),
    )
    page = generate_latest(_NodeCollector(node, observed))
    return page + generate_latest(_PROCESS)


class _NodeCollector(Collector):
    """One scrape."""

    def __init__(self, node: Node, observed: _Observed) -> None:
        self._node = node
        self._observed = observed

    def collect(self) -> Iterator[Metric]:
        counters = self._node.counters
        yield from _traffic(counters)
        yield from _money(counters, self._observed)
        yield from self._store()
        yield from self._state()

    def _store(self) -> Iterator[Metric]:
        store, vitals = self._node.store, self._node.vitals
        yield _gauge("gwd_writer_queue", "Functions waiting for the writer", store.queued)
        yield _histogram(
            "gwd_writer_batch_size", "Functions in one transaction", store.counters.batch
        )
        yield _histogram(
            "gwd_writer_commit_seconds",
            "One transaction of the writer, its functions and its COMMIT",
            store.counters.commit,
        )
        yield _gauge(
            "gwd_writer_silence_seconds",
            "Since the writer last answered",
            max(0.0, self._node.clock.monotonic_s() - vitals.writer_seen_s),
        )
        yield _counter(
            "gwd_invariant_failures",
            "Transactions that were undone because an invariant did not hold",
            store.counters.invariant_failures,
        )
        yield _counter(
            "gwd_alerts_left_out",
            "Alerts and top-ups that failed beside a charge that was kept",
            store.tolerated,
        )
        yield _gauge("gwd_wal_bytes", "Size of the write-ahead log", self._observed.wal_bytes)
        yield _gauge(
            "gwd_disk_free_bytes", "Free space beside the database", vitals.disk_free_bytes
        )

    def _state(self) -> Iterator[Metric]:
        node = self._node
        yield _histogram(
            "gwd_loop_lag_seconds", "How late the event loop was, four samples a second",
            node.vitals.loop_lag,
        )  # fmt: skip
        yield _gauge("gwd_in_flight", "Inference requests under way", len(node.line.live))
        yield _gauge("gwd_connections", "Open client connections", node.counters.connections)
        yield _labelled(
            "gwd_connections_cut",
            "Connections refused or ended by the HTTP front",
            "reason",
            node.counters.connections_cut,
        )
        yield _labelled(
            "gwd_heads_refused",
            "Requests that were no strict HTTP",
            "reason",
            node.counters.heads_refused,
        )
        yield _gauge("gwd_ready", "1 when /readyz answers 200", int(unready(node) is None))
        yield _gauge(
            "gwd_quarantine",
            "1 when the ledger was found not to add up",
            int(node.status.quarantine is not None),
        )
        yield _gauge(
            "gwd_clock_doubted",
            "1 when the machine's clock is in doubt, 2 when it is not followed at all",
            STATES.index(node.clock.standing().state),
        )
        yield _gauge(
            "gwd_uptime_seconds",
            "Since the node started",
            max(0, self._observed.now_us - node.status.started_us) / US_PER_S,
        )
        about = GaugeMetricFamily("gwd_build_info", "The version", labels=["version"])
        about.add_metric([__version__], 1)
        yield about


def _traffic(counters: Counters) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "gwd_requests", "Answers by route and status class", labels=["method", "route", "status"]
    )
    for (method, route, digit), count in _by_route(counters.requests).items():
        requests.add_metric([method, route, f"{digit}xx"], count)
    yield requests
    yield _labelled(
        "gwd_refusals",
        "Inference requests refused before an upstream was called, by error code",
        "code",
        counters.refusals,
    )
    yield _labelled(
        "gwd_auth_failures",
        "Requests whose credential was missing, wrong, no longer valid or of the wrong kind",
        "kind",
        counters.auth_failures,
    )
    attempts = CounterMetricFamily(
        "gwd_upstream_attempts", "Upstream calls by how they ended", labels=["adapter", "reason"]
    )
    for (adapter, reason), count in list(counters.attempts.items()):
        attempts.add_metric([adapter, reason], count)
    yield attempts
    yield _histogram(
        "gwd_first_token_seconds", "From a streamed request to its first output",
        counters.first_token,
    )  # fmt: skip
    yield _counter(
        "gwd_hosted_tools_dropped",
        "Hosted tools that clients named and no upstream has",
        counters.hosted_tools_dropped,
    )


def _money(counters: Counters, observed: _Observed) -> Iterator[Metric]:
    holds = observed.holds
    age_us = observed.now_us - holds.oldest_us if holds.oldest_us is not None else 0
    yield _gauge(
        "gwd_open_reservations", "Holds that are neither settled nor released", holds.count
    )
    yield _gauge(
        "gwd_oldest_reservation_seconds",
        "Age of the oldest open hold",
        max(0, age_us) / US_PER_S,
    )
    yield _histogram(
        "gwd_settlement_seconds", "From the end of an answer to its durable settlement",
        counters.settlement,
    )  # fmt: skip
    yield _counter(
        "gwd_estimate_exceeded", "Answers that cost more than was held", counters.estimates_exceeded
    )
    yield _counter(
        "gwd_usage_estimated",
        "Bills by our own count because the vendor gave none",
        counters.usage_estimated,
    )
    yield _counter(
        "gwd_usage_rejected",
        "Bills with our own count because the vendor's was impossible",
        counters.usage_rejected,
    )
    yield _labelled(
        "gwd_prompts_above_bound",
        "Bills by a vendor's count of a prompt larger than the request can be",
        "provider",
        counters.prompts_above_bound,
    )
    yield _counter(
        "gwd_unpriced_extras",
        "Answers with a tier, speed, region or search that their vendor bills and nobody here is billed for",
        counters.unpriced_extras,
    )


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


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in list(values.items()):
        family.add_metric([value], count)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    running, buckets = 0, []
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        running += count
        buckets.append(("+Inf" if bound == float("inf") else str(bound), float(running)))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram.total)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


_PROCESS: Final = CollectorRegistry()
ProcessCollector(registry=_PROCESS)
