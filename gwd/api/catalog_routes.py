"""The routes of the catalog: providers, models, endpoints, and the platform's vendor keys."""

from typing import Final

from gwd.api import catalog
from gwd.api.access import manage
from gwd.api.route import Nothing, Route, delete, get, list_, patch, post
from gwd.api.shapes import Deleted, Listed, One
from gwd.catalog.inputs import (
    EndpointInput,
    EndpointPatch,
    ModelInput,
    ModelPatch,
    ProviderInput,
    ProviderPatch,
)
from gwd.catalog.record import EndpointRecord, ModelRecord, ProviderRecord
from gwd.credentials.record import CredentialRecord
from gwd.credentials.service import CredentialInput, CredentialPatch

MODEL_ID: Final = "<model:path>"

CATALOG_ROUTES: Final[tuple[Route, ...]] = (
    list_(
        "/catalog/providers",
        manage("catalog.read"),
        catalog.list_providers,
        answers=Listed[ProviderRecord],
    ),
    post(
        "/catalog/providers",
        manage("catalog.write"),
        catalog.create_provider,
        ProviderInput,
        "provider.create",
        answers=One[ProviderRecord],
        status=201,
    ),
    get(
        "/catalog/providers/<slug>",
        manage("catalog.read"),
        catalog.get_provider,
        answers=One[ProviderRecord],
    ),
    patch(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.patch_provider,
        ProviderPatch,
        "provider.patch",
        answers=One[ProviderRecord],
    ),
    delete(
        "/catalog/providers/<slug>",
        manage("catalog.write"),
        catalog.delete_provider,
        "provider.delete",
        answers=Deleted,
    ),
    list_(
        "/catalog/models", manage("catalog.read"), catalog.list_models, answers=Listed[ModelRecord]
    ),
    post(
        "/catalog/models",
        manage("catalog.write"),
        catalog.create_model,
        ModelInput,
        "model.create",
        answers=One[ModelRecord],
        status=201,
    ),
    get(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.read"),
        catalog.get_model,
        answers=One[ModelRecord],
    ),
    patch(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.patch_model,
        ModelPatch,
        "model.patch",
        answers=One[ModelRecord],
    ),
    delete(
        f"/catalog/models/{MODEL_ID}",
        manage("catalog.write"),
        catalog.delete_model,
        "model.delete",
        answers=Deleted,
    ),
    list_(
        "/catalog/endpoints",
        manage("catalog.read"),
        catalog.list_endpoints,
        *catalog.OF_ENDPOINTS,
        answers=Listed[EndpointRecord],
    ),
    post(
        "/catalog/endpoints",
        manage("catalog.write"),
        catalog.create_endpoint,
        EndpointInput,
        "endpoint.create",
        answers=One[EndpointRecord],
        status=201,
    ),
    get(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.read"),
        catalog.get_endpoint,
        answers=One[EndpointRecord],
    ),
    patch(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.patch_endpoint,
        EndpointPatch,
        "endpoint.patch",
        answers=One[EndpointRecord],
    ),
    delete(
        "/catalog/endpoints/<endpoint>",
        manage("catalog.write"),
        catalog.delete_endpoint,
        "endpoint.delete",
        answers=Deleted,
    ),
    post(
        "/catalog/endpoints/<endpoint>/drain",
        manage("catalog.write"),
        catalog.drain_endpoint,
        Nothing,
        "endpoint.drain",
        answers=One[EndpointRecord],
    ),
    list_(
        "/catalog/credentials",
        manage("catalog.write"),
        catalog.list_credentials,
        catalog.OF_PROVIDER,
        answers=Listed[CredentialRecord],
    ),
    post(
        "/catalog/credentials",
        manage("catalog.write"),
        catalog.create_credential,
        CredentialInput,
        "credential.create",
        answers=One[CredentialRecord],
        status=201,
    ),
    get(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.get_credential,
        answers=One[CredentialRecord],
    ),
    patch(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.patch_credential,
        CredentialPatch,
        "credential.patch",
        answers=One[CredentialRecord],
    ),
    delete(
        "/catalog/credentials/<credential>",
        manage("catalog.write"),
        catalog.delete_credential,
        "credential.delete",
        answers=Deleted,
    ),
)
