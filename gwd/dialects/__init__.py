"""dialects: the API shapes clients speak, as pure functions over values.

Owns: parse (client bytes to `Request`), render (events to client bytes), each dialect's error envelope.
Does not own: routing, money, HTTP; a dialect never sees a vendor.
Invariants: one renderer for streamed and whole answers; the closing frame waits for `Settled`.
Speaks to: core only.
"""
