"""The way to the collector: a bounded queue, and a thread that sends what is in it by OTLP over HTTP.

The collector may be slow, wrong or gone. What finds no place in the queue, and what could not be sent, is counted and
forgotten; a stop waits for less than two seconds.
"""

import logging
import threading
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Final

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from gwd import __version__
from gwd.core.counters import Counters
from gwd.pipeline.settle.observer import Ended
from gwd.telemetry.instruments import Instruments
from gwd.telemetry.spans import spans_of

MAX_QUEUE: Final = 8_192
BATCH: Final = 512
SEND_S: Final = 2.0
METRICS_S: Final = 30.0
TIMEOUT_S: Final = 5.0
LAST_WORDS_S: Final = 1.5

log = logging.getLogger(__name__)


class Telemetry:
    """One for the node. `observe` is called on the event loop and never waits."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str],
        metrics: bool,
        counters: Counters,
    ) -> None:
        # The library tells of every failure; one line a change is ours.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._counters = counters
        self._resource = Resource({"service.name": "gwd", "service.version": __version__})
        self._queue: deque[ReadableSpan] = deque()
        self._news = threading.Event()
        self._closing = False
        self._is_failing = False
        base, own = endpoint.rstrip("/"), {"user-agent": f"gwd/{__version__}", **headers}
        self._spans = OTLPSpanExporter(
            f"{base}/v1/traces", headers=own, timeout=TIMEOUT_S, session=_session()
        )
        self._instruments = Instruments(self._resource) if metrics else None
        self._metrics = OTLPMetricExporter(
            f"{base}/v1/metrics", headers=own, timeout=TIMEOUT_S, session=_session()
        )
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)
        self._thread.start()

    def observe(self, ended: Ended) -> None:
        """Measure a generation, and put its spans into the queue if its trace is kept."""
        if self._instruments is not None:
            self._instruments.measure(ended)
        trace = ended.trace
        if trace is None or not trace.is_sampled:
            return
        spans = list(spans_of(ended, trace, self._resource))
        if len(self._queue) + len(spans) > MAX_QUEUE:
            self._counters.spans["queue_full"] += len(spans)
            return
        self._queue.extend(spans)
        if len(self._queue) >= BATCH:
            self._news.set()

    def close(self) -> None:
        """Send what is there, as far as that goes in the time."""
        self._closing = True
        self._news.set()
        self._thread.join(LAST_WORDS_S)
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        self._metrics.shutdown()

    def _run(self) -> None:
        measured_s = monotonic()
        while not self._closing:
            self._news.wait(SEND_S)
            self._news.clear()
            self._send_spans()
            if monotonic() - measured_s >= METRICS_S:
                measured_s = monotonic()
                self._send_metrics()
        self._send_spans()
        self._send_metrics()

    def _send_spans(self) -> None:
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            is_sent = self._spans.export(batch) is SpanExportResult.SUCCESS
            self._counters.spans["sent" if is_sent else "export_failed"] += len(batch)
            self._note(is_sent=is_sent)
            if self._closing and not is_sent:
                return

    def _send_metrics(self) -> None:
        found = self._instruments.collected() if self._instruments is not None else None
        if found is not None:
            self._note(is_sent=self._metrics.export(found) is MetricExportResult.SUCCESS)

    def _note(self, *, is_sent: bool) -> None:
        """One line of the log for each change."""
        if is_sent == self._is_failing:
            self._is_failing = not is_sent
            if is_sent:
                log.warning("the collector of [otel] takes spans and metrics again")
            else:
                log.error("the collector of [otel] takes no spans or metrics; requests go on")


def _session() -> requests.Session:
    """No proxy and no login from the environment, and nothing follows a redirect with the headers."""
    session = requests.Session()
    session.trust_env = False
    session.max_redirects = 0
    return session
