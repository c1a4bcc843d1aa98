"""health: how endpoints and credentials did lately, and what rests because of it.

Owns: rests after failures, outages, medians of speed and of the time to the first token, what vendors said last of
credentials; how an endpoint stands, as the operator sees it.
Does not own: which endpoint a request goes to (pipeline), the catalog, the credentials themselves.
Invariants: a rest only orders; an endpoint is closed only after a refused key, or within a wait that its vendor named.
Speaks to: catalog, credentials.
"""
