"""telemetry: generations as spans and metrics of OpenTelemetry, for a collector, by the conventions for generative AI.

Owns: what a span and a measurement say of a generation, the queue in front of the collector, the thread that sends.
Does not own: which trace a request belongs to (core), when a generation has ended (pipeline), /metrics (api).
Invariants: nothing of what was asked or answered leaves; a collector that is slow, wrong or gone harms no request and
delays no stop; nothing of it is imported unless `[otel] endpoint` is set.
Speaks to: pipeline for what has ended, core; only wiring makes one.
"""
