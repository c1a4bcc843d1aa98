"""plan: which targets a request may go to and in which order, or why to none.

Owns: resolution of names, filters, order, choice of credentials; what plans are computed from, cached;
where conversations were served last.
Does not own: whether there is money for it (admit), the calls (dispatch), the catalog, how endpoints did (health).
Invariants: a plan is a value computed from values; it carries the revisions that it was computed from.
Speaks to: catalog, credentials, health, orgs and keys for what requests may use, alerts for what vendors say of keys,
pricing, store.
"""
