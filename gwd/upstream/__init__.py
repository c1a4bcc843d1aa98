"""upstream: the HTTP client that calls model vendors.

Owns: connections to vendors and their reuse, TLS towards them, the way through a proxy, deadlines of reads,
decompression.
Does not own: what is sent and what an answer means (vendors), which vendor is called and when (pipeline), calls to
addresses that users typed (outbound).
Invariants: no redirects, no proxy from the environment; whatever goes wrong on the way is an `UpstreamFault`.
Speaks to: core.
"""
