"""pipeline: the line of a request: plan, admit, dispatch, settle, and the last event `Settled`.

Owns: the order of the line (`inference`), and a room for each of its steps and for the side that the client sees.
Does not own: what a dialect or a vendor says, what money means, HTTP towards clients and vendors.
Invariants: no call goes upstream before its hold is durable; every admitted generation settles or releases once;
after the first output reached the client no other endpoint is tried.
Speaks to: dialects, vendors, upstream, keys, credentials, health, activity, alerts, replay, ledger, spend, catalog,
orgs, pricing.
"""
