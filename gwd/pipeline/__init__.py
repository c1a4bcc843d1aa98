"""pipeline: the line of a request: plan, admit, dispatch, settle, and the last event `Settled`.

Owns: the order of the line, routing, health of endpoints, the upstream client, failover, deadlines, the receipt.
Does not own: what a dialect or a vendor says, what money means, HTTP towards clients.
Invariants: no call goes upstream before its hold is durable; every admitted generation settles or releases once;
after the first output reached the client no other endpoint is tried.
Speaks to: dialects, vendors, keys, budgets, credentials, activity, alerts, ledger, spend, catalog, orgs, pricing.
"""
