"""Generations as measurements: how long, how many tokens, how soon the first, what it cost."""

from typing import Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData
from opentelemetry.sdk.resources import Resource

from gwd import __version__
from gwd.pipeline.settle.observer import Ended
from gwd.telemetry.spans import input_tokens, operation, output_tokens

MS_PER_S: Final = 1_000
# The bounds that the conventions for generative AI name.
_DURATIONS_S: Final = [0.01 * 2**power for power in range(14)]
_TOKENS: Final = [4**power for power in range(14)]
_FIRST_TOKEN_S: Final = [
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
]


class Instruments:
    """Written on the event loop, read by the thread that sends."""

    def __init__(self, resource: Resource) -> None:
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        meter = self._provider.get_meter("gwd", __version__)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "From the request to the end of its answer",
            explicit_bucket_boundaries_advisory=_DURATIONS_S,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of a request, by input and output",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._first_token = meter.create_histogram(
            "gen_ai.server.time_to_first_token",
            "s",
            "From the request to its first output",
            explicit_bucket_boundaries_advisory=_FIRST_TOKEN_S,
        )
        self._cost = meter.create_counter("gwd.cost", "{nano_usd}", "What requests were charged")

    def measure(self, ended: Ended) -> None:
        """Of every generation that a vendor was asked for, sampled or not."""
        row = ended.row
        if row.model is None or row.provider is None:
            return
        labels = {
            "gen_ai.operation.name": operation(row),
            "gen_ai.provider.name": row.provider,
            "gen_ai.request.model": row.model,
            "gen_ai.response.model": row.model,
        }
        how = {**labels, "error.type": row.error_code} if row.error_code else labels
        self._duration.record((row.latency_ms or 0) / MS_PER_S, how)
        self._tokens.record(input_tokens(row), {**labels, "gen_ai.token.type": "input"})
        self._tokens.record(output_tokens(row), {**labels, "gen_ai.token.type": "output"})
        self._cost.add(row.cost_total_nano, labels)
        if row.ttft_ms is not None:
            self._first_token.record(row.ttft_ms / MS_PER_S, labels)

    def collected(self) -> MetricsData | None:
        """All that was measured since the start; None where nothing was."""
        return self._reader.get_metrics_data()
