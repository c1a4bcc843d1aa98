"""The table of routes: for each the method, the path, who may call it, and what it does. Nothing else is served.

Inference and the public reading of models are in `app`; everything else that is served is here.
"""

from typing import Final

from gwd.api import (
    catalog,
    clock,
    doctor,
    invitations,
    operator,
    provider_probe,
)
from gwd.api.access import manage
from gwd.api.clock import AcceptClock
from gwd.api.key_routes import KEY_ROUTES
from gwd.api.money_routes import MONEY_ROUTES
from gwd.api.people_routes import PEOPLE_ROUTES
from gwd.api.route import (
    LiveRoute,
    Nothing,
    OpenRoute,
    Route,
    delete,
    get,
    list_,
    patch,
    post,
)
from gwd.catalog.inputs import (
    EndpointInput,
    EndpointPatch,
    ModelInput,
    ModelPatch,
    ProviderInput,
    ProviderPatch,
)
from gwd.credentials.service import CredentialInput, CredentialPatch
from gwd.management.invitations import AcceptInvitation

MODEL_ID: Final = "<model:path>"

ROUTES: Final[tuple[Route, ...]] = (
    *MONEY_ROUTES,
    *KEY_ROUTES,
    *PEOPLE_ROUTES,
    # catalog
    list_("/catalog/providers", manage("catalog.read"), catalog.list_providers),
    post(
        "/catalog/providers",
        manage("catalog.write"),
        catalog.create_provider,
        ProviderInput,
        "provider.create",
    ),
    get("/catalog/providers/<slug>", manage("catalog.read"), catalog.get_provider),
    patch(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.patch_provider,
        ProviderPatch,
        "provider.patch",
    ),
    delete(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.delete_provider,
        "provider.delete",
    ),
    list_("/catalog/models", manage("catalog.read"), catalog.list_models),
    post(
        "/catalog/models",
        manage("catalog.write"),
        catalog.create_model,
        ModelInput,
        "model.create",
    ),
    get(f"/catalog/models/{MODEL_ID}", manage("catalog.read"), catalog.get_model),
    patch(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.patch_model,
        ModelPatch,
        "model.patch",
    ),
    delete(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.delete_model,
        "model.delete",
    ),
    list_(
        "/catalog/endpoints",
        manage("catalog.read"),
        catalog.list_endpoints,
        *("model", "provider"),
    ),
    post(
        "/catalog/endpoints",
        manage("catalog.write"),
        catalog.create_endpoint,
        EndpointInput,
        "endpoint.create",
    ),
    get("/catalog/endpoints/<endpoint>", manage("catalog.read"), catalog.get_endpoint),
    patch(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.patch_endpoint,
        EndpointPatch,
        "endpoint.patch",
    ),
    delete(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.delete_endpoint,
        "endpoint.delete",
    ),
    post(
        "/catalog/endpoints/<endpoint>/drain",
        manage("catalog.write"),
        catalog.drain_endpoint,
        Nothing,
        "endpoint.drain",
    ),
    list_("/catalog/credentials", manage("catalog.write"), catalog.list_credentials, "provider"),
    post(
        "/catalog/credentials",
        manage("catalog.write"),
        catalog.create_credential,
        CredentialInput,
        "credential.create",
    ),
    get("/catalog/credentials/<credential>", manage("catalog.write"), catalog.get_credential),
    patch(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.patch_credential,
        CredentialPatch,
        "credential.patch",
    ),
    delete(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.delete_credential,
        "credential.delete",
    ),
)

LIVE_ROUTES: Final[tuple[LiveRoute, ...]] = (
    LiveRoute(
        method="GET",
        path="/operator/status",
        access=manage("operator"),
        handler=operator.status,
    ),
    LiveRoute(
        method="GET",
        path="/operator/doctor",
        access=manage("operator"),
        handler=doctor.look,
    ),
    LiveRoute(
        method="GET",
        path="/operator/clock",
        access=manage("operator"),
        handler=clock.show,
    ),
    LiveRoute(
        method="POST",
        path="/operator/clock",
        access=manage("operator"),
        handler=clock.accept,
        shape=AcceptClock,
        action="clock.accept",
    ),
    LiveRoute(
        method="POST",
        path="/operator/reload",
        access=manage("operator"),
        handler=operator.reload,
        shape=Nothing,
        action="node.reload",
    ),
    LiveRoute(
        method="POST",
        path="/catalog/providers/<slug>/test",
        access=manage("catalog.write"),
        handler=provider_probe.probe,
        shape=Nothing,
        action="provider.test",
    ),
)

OPEN_ROUTES: Final[tuple[OpenRoute, ...]] = (
    OpenRoute(
        method="POST",
        path="/invitations/accept",
        handler=invitations.accept,
        shape=AcceptInvitation,
        action="invitation.accept",
        answers=invitations.JoinedOrganization,
        status=201,
    ),
)
