"""The table of routes: for each the method, the path, who may call it, and what it does. Nothing else is served.

A management route names its handler, the shape of its body and the action of its audit line.
"""

from typing import Final

import msgspec

from gwd.api import auth_key, catalog, generations, keys, money
from gwd.api.access import ANY_KEY, Access, any_key_with, manage
from gwd.api.management import Handler
from gwd.catalog.inputs import (
    EndpointInput,
    EndpointPatch,
    ModelInput,
    ModelPatch,
    ProviderInput,
    ProviderPatch,
)
from gwd.credentials.service import CredentialInput, CredentialPatch
from gwd.keys.service import CreateKey, PatchKey


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One management route. `path` is relative to the base path, its parameters in `<angle brackets>`."""

    method: str
    path: str
    access: Access
    handler: Handler
    shape: type | None = None
    action: str | None = None


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a POST that needs none."""


def _get(path: str, access: Access, handler: Handler) -> Route:
    return Route(method="GET", path=path, access=access, handler=handler)


def _post(
    path: str, access: Access, handler: Handler, shape: type, action: str | None = None
) -> Route:
    return Route(
        method="POST", path=path, access=access, handler=handler, shape=shape, action=action
    )


def _patch(path: str, access: Access, handler: Handler, shape: type, action: str) -> Route:
    return Route(
        method="PATCH", path=path, access=access, handler=handler, shape=shape, action=action
    )


def _delete(path: str, access: Access, handler: Handler, action: str) -> Route:
    return Route(method="DELETE", path=path, access=access, handler=handler, action=action)


MODEL_ID: Final = "<model:path>"

ROUTES: Final[tuple[Route, ...]] = (
    _get("/auth/key", ANY_KEY, auth_key.show),
    _get("/key", ANY_KEY, auth_key.show),
    # keys
    _get("/keys", manage("keys.read"), keys.list_),
    _post("/keys", manage("keys.write"), keys.create, CreateKey, "key.created"),
    _get("/keys/<key>", manage("keys.read"), keys.get),
    _patch("/keys/<key>", manage("keys.write"), keys.patch, PatchKey, "key.updated"),
    _delete("/keys/<key>", manage("keys.write"), keys.delete, "key.deleted"),
    # money
    _get("/credits", any_key_with("credits.read"), money.balance),
    _get("/credits/ledger", manage("ledger.read"), money.list_entries),
    _post(
        "/credits/grants",
        manage("credits.grant"),
        money.grant,
        money.GrantInput,
        "credit.granted",
    ),
    _post(
        "/credits/purchases",
        manage("credits.write"),
        money.purchase,
        money.PurchaseInput,
        "credit.purchased",
    ),
    _post(
        "/credits/refunds",
        manage("credits.write"),
        money.refund,
        money.RefundInput,
        "credit.refunded",
    ),
    # activity
    _get("/generation", any_key_with("activity.read"), generations.get),
    _get("/generations", manage("activity.read"), generations.list_),
    # catalog
    _get("/catalog/providers", manage("catalog.read"), catalog.list_providers),
    _post(
        "/catalog/providers",
        manage("catalog.write"),
        catalog.create_provider,
        ProviderInput,
        "provider.created",
    ),
    _get("/catalog/providers/<slug>", manage("catalog.read"), catalog.get_provider),
    _patch(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.patch_provider,
        ProviderPatch,
        "provider.updated",
    ),
    _delete(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.delete_provider,
        "provider.deleted",
    ),
    _get("/catalog/models", manage("catalog.read"), catalog.list_models),
    _post(
        "/catalog/models",
        manage("catalog.write"),
        catalog.create_model,
        ModelInput,
        "model.created",
    ),
    _get(f"/catalog/models/{MODEL_ID}", manage("catalog.read"), catalog.get_model),
    _patch(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.patch_model,
        ModelPatch,
        "model.updated",
    ),
    _delete(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.delete_model,
        "model.deleted",
    ),
    _get("/catalog/endpoints", manage("catalog.read"), catalog.list_endpoints),
    _post(
        "/catalog/endpoints",
        manage("catalog.write"),
        catalog.create_endpoint,
        EndpointInput,
        "endpoint.created",
    ),
    _get("/catalog/endpoints/<endpoint>", manage("catalog.read"), catalog.get_endpoint),
    _patch(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.patch_endpoint,
        EndpointPatch,
        "endpoint.updated",
    ),
    _delete(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.delete_endpoint,
        "endpoint.deleted",
    ),
    _post(
        "/catalog/endpoints/<endpoint>/drain",
        manage("catalog.write"),
        catalog.drain_endpoint,
        Nothing,
        "endpoint.drained",
    ),
    _get("/catalog/credentials", manage("catalog.write"), catalog.list_credentials),
    _post(
        "/catalog/credentials",
        manage("catalog.write"),
        catalog.create_credential,
        CredentialInput,
        "credential.created",
    ),
    _get("/catalog/credentials/<credential>", manage("catalog.write"), catalog.get_credential),
    _patch(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.patch_credential,
        CredentialPatch,
        "credential.updated",
    ),
    _delete(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.delete_credential,
        "credential.deleted",
    ),
)

VERIFY: Final = Route(
    method="POST",
    path="/ledger/verify",
    access=manage("ledger.verify"),
    handler=money.verify,
    shape=money.VerifyInput,
)
"""Reads everything, so it runs on a reader although it is a POST."""
