"""keys: API keys of both kinds: their secrets, state, spend limits, rate windows and policies.

Owns: the table `api_key`, what a key looks like, whether one may be used now, the rate windows in memory.
Does not own: what was spent (spend), what is held (ledger), who may do what (orgs.rights), budgets.
Invariants: a secret is never stored and shown once; a rotated key and its successor are one family with one spend
counter and one rate window; a disabled, expired or deleted key is refused by the next admission.
Queries: peewee; what authentication, admission and settlement ask (`admission`) in plain SQL with named rows.
Speaks to: spend, ledger and orgs below it.
"""
