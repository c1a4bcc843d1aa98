"""vendors: the API shapes upstreams speak, as pure functions over values.

Owns: build (`Request` to one upstream call), decode (upstream bytes to events), fault (a failed answer to a `Fault`).
Does not own: HTTP, retries, money; an adapter never sees a dialect.
Invariants: every decoder's events follow the grammar; usage is turned into disjoint classes once, here.
Speaks to: core only.

A format is a folder: `format.py` says what the other rooms have to know of it, `build.py` and `decode.py` speak it,
`adapter.py` puts them together as its `ADAPTER`. One line in `formats.py` makes it one of those that are served.
"""
