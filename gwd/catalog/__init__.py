"""catalog: what can be called and for how much: providers, models, endpoints, dated prices, aliases, lifecycle.

Owns: the tables provider, model, model_alias, endpoint, price, and the catalog's revision.
Does not own: credentials (their secrets live in the credentials room), health, choice of an endpoint.
Invariants: prices are appended, never edited; an endpoint without a complete price says so and is not eligible;
the lifecycle state of a model is derived from the clock, never stored; every change raises the revision.
Queries: peewee; the revision, which every admission compares, in plain SQL.
Speaks to: store and core; the pipeline reads it as one immutable `Catalog` value.
"""
