"""plan: which targets a request may go to and in which order, or why to none; and how well endpoints do.

Owns: resolution of names, filters, order, choice of credentials; health, rests and troubled credentials; what plans are
computed from, cached.
Does not own: whether there is money for it (admit), the calls (dispatch), the catalog.
Invariants: a plan is a value computed from values; it carries the revisions that it was computed from.
Speaks to: catalog, credentials, orgs, keys for allowed models, pricing, store.
"""
