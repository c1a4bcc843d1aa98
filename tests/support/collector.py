"""A collector of OpenTelemetry on the loopback: it takes OTLP over HTTP and keeps what came; or it answers nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What came, in order."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.spans: list[Span] = []
        self.metrics: dict[str, Any] = {}
        self.status = 200
        self.go_on = threading.Event()
        self.go_on.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.go_on.wait()
                collector.take(self.path, body, dict(self.headers.items()))
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        return Handler

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in headers.items()})
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        else:
            assert path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in scope.metrics}


@contextmanager
def collecting() -> Iterator[Collector]:
    made = Collector()
    server = made._server
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(found: Any) -> dict[str, Any]:
    """Of a span or a data point, as plain values."""
    plain: dict[str, Any] = {}
    for pair in found.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        plain[pair.key] = (
            [each.string_value for each in value.values] if kind == "array_value" else value
        )
    return plain
