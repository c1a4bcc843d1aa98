"""api: HTTP: the table of routes with who may call each, authentication, bodies and headers, status codes.

Owns: everything that knows sanic. Does not own: decisions; a handler parses, calls one function, shapes the answer.
Invariants: a route cannot exist without naming its allowed key kinds and its right; every error has its dialect's
envelope; foreign and absent things answer alike. Speaks to: pipeline, management and the rooms below.
"""
