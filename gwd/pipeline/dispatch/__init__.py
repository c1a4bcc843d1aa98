"""dispatch: the attempts of a plan, one target after the other, until one answers.

Owns: attempts, deadlines, failover and its rules, the request as one target is sent it, redaction of what vendors
quote, signatures kept between turns, the error that a client is told when nothing answered.
Does not own: the formats (vendors), the connections (upstream), the bill (settle).
Invariants: after the first output reached the client no other target is tried; no secret of a call leaves this room.
Speaks to: plan, vendors, upstream, replay, pricing.
"""
