"""admit: key, limits, budgets and the hold of a planned request, decided in one transaction.

Owns: the order of these checks, the identity of a generation on record, the records of refused requests.
Does not own: the limits themselves (keys, budgets), credit (ledger), the plan.
Invariants: what is admitted has a durable hold for its dearest target; a plan from an old revision is computed anew.
Speaks to: plan, keys, ledger, activity, alerts, catalog and orgs for their revisions, pricing.
"""
