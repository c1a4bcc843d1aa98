"""openapi: the written shape of the API, OpenAPI 3.1, made from the table of routes and the types it names.

Owns: how routes, query parameters, bodies, answers and errors are said in OpenAPI; what the inference answers hold.
Does not own: any field's meaning or limit, which stand in the field's own type; what a route does.
Speaks to: the table of routes and the dialects' wire types. It is built when first asked for, never at start-up.
"""

from gwd.api.openapi.document import document, encoded

__all__ = ["document", "encoded"]
