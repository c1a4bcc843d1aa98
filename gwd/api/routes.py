"""The table of routes: for each the method, the path, who may call it, and what it does. Nothing else is served.

Inference and the public reading of models are in `app`; everything else that is served is here.
"""

from typing import Final

from gwd.api import (
    audit,
    auth_key,
    budgets,
    catalog,
    clock,
    doctor,
    invitations,
    keys,
    members,
    operator,
    organizations,
    provider_probe,
    workspaces,
)
from gwd.api.access import ANY_KEY, manage
from gwd.api.clock import AcceptClock
from gwd.api.money_routes import MONEY_ROUTES
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
    put,
    walk,
)
from gwd.budgets import NewBudget, PatchBudget, PutWorkspaceBudget
from gwd.catalog.inputs import (
    EndpointInput,
    EndpointPatch,
    ModelInput,
    ModelPatch,
    ProviderInput,
    ProviderPatch,
)
from gwd.credentials.service import CredentialInput, CredentialPatch
from gwd.keys.fields import CreateKey, PatchKey
from gwd.keys.rotation import RotateKey
from gwd.management.invitations import AcceptInvitation, CreateInvitation
from gwd.management.teams import CreateTeam
from gwd.orgs.members import PatchMember
from gwd.orgs.organizations import CreateOrganization, PatchAnyOrganization, PatchOrganization
from gwd.orgs.settings import PatchSettings
from gwd.orgs.workspaces import PatchWorkspace

MODEL_ID: Final = "<model:path>"

ROUTES: Final[tuple[Route, ...]] = (
    *MONEY_ROUTES,
    get("/auth/key", ANY_KEY, auth_key.show),
    get("/key", ANY_KEY, auth_key.show),
    # keys
    walk(
        "/keys",
        manage("keys.read"),
        keys.list_,
        *("include_disabled", "include_expired", "workspace_id", "name"),
    ),
    post("/keys", manage("keys.write"), keys.create, CreateKey, "key.create"),
    get("/keys/<key>", manage("keys.read"), keys.get),
    patch("/keys/<key>", manage("keys.write"), keys.patch, PatchKey, "key.patch"),
    delete("/keys/<key>", manage("keys.write"), keys.delete, "key.delete"),
    post("/keys/<key>/rotate", manage("keys.write"), keys.rotate, RotateKey, "key.rotate"),
    # organization, people, workspaces
    get("/organization", manage("organization.read"), organizations.own),
    patch(
        "/organization",
        manage("organization.write"),
        organizations.patch_own,
        PatchOrganization,
        "organization.patch",
    ),
    get("/organization/settings", manage("settings.read"), organizations.settings),
    patch(
        "/organization/settings",
        manage("settings.write"),
        organizations.patch_settings,
        PatchSettings,
        "settings.patch",
    ),
    list_("/organization/members", manage("members.read"), members.list_),
    get("/organization/members/<user>", manage("members.read"), members.get),
    patch(
        "/organization/members/<user>",
        manage("members.write"),
        members.patch,
        PatchMember,
        "member.patch",
    ),
    delete(
        "/organization/members/<user>",
        manage("members.write"),
        members.delete,
        "member.remove",
        "keep_keys",
    ),
    walk("/organization/invitations", manage("invitations.read"), invitations.list_),
    post(
        "/organization/invitations",
        manage("invitations.write"),
        invitations.create,
        CreateInvitation,
        "invitation.create",
    ),
    get(
        "/organization/invitations/<invitation>",
        manage("invitations.read"),
        invitations.get,
    ),
    delete(
        "/organization/invitations/<invitation>",
        manage("invitations.write"),
        invitations.revoke,
        "invitation.revoke",
    ),
    list_("/workspaces", manage("workspaces.read"), workspaces.list_),
    post(
        "/workspaces",
        manage("workspaces.create"),
        workspaces.create,
        CreateTeam,
        "workspace.create",
    ),
    get("/workspaces/<workspace>", manage("workspaces.read"), workspaces.get),
    patch(
        "/workspaces/<workspace>",
        manage("workspaces.write"),
        workspaces.patch,
        PatchWorkspace,
        "workspace.patch",
    ),
    delete(
        "/workspaces/<workspace>",
        manage("workspaces.create"),
        workspaces.delete,
        "workspace.delete",
    ),
    list_("/workspaces/<workspace>/members", manage("workspaces.read"), workspaces.list_members),
    post(
        "/workspaces/<workspace>/members/add",
        manage("workspaces.write"),
        workspaces.add_members,
        workspaces.AddMembers,
        "workspace.add_members",
    ),
    post(
        "/workspaces/<workspace>/members/remove",
        manage("workspaces.write"),
        workspaces.remove_members,
        workspaces.RemoveMembers,
        "workspace.remove_members",
    ),
    # organizations of the node
    list_("/organizations", manage("organizations.manage"), organizations.list_),
    post(
        "/organizations",
        manage("organizations.manage"),
        organizations.create,
        CreateOrganization,
        "organization.create",
    ),
    get("/organizations/<organization>", manage("organizations.manage"), organizations.get),
    patch(
        "/organizations/<organization>",
        manage("organizations.manage"),
        organizations.patch,
        PatchAnyOrganization,
        "organization.patch",
    ),
    delete(
        "/organizations/<organization>",
        manage("organizations.manage"),
        organizations.delete,
        "organization.delete",
    ),
    get(
        "/organizations/<organization>/settings",
        manage("organizations.manage"),
        organizations.settings_of,
    ),
    patch(
        "/organizations/<organization>/settings",
        manage("organizations.manage"),
        organizations.patch_settings_of,
        PatchSettings,
        "settings.patch",
    ),
    walk("/audit", manage("audit.read"), audit.list_, *audit.FILTERS, "from", "to"),
    # budgets
    list_(
        "/budgets",
        manage("budgets.read"),
        budgets.list_,
        *("scope", "scope_id", "interval", "kind"),
    ),
    post("/budgets", manage("budgets.write"), budgets.create, NewBudget, "budget.create"),
    get("/budgets/<budget>", manage("budgets.read"), budgets.get),
    patch("/budgets/<budget>", manage("budgets.write"), budgets.patch, PatchBudget, "budget.patch"),
    delete("/budgets/<budget>", manage("budgets.write"), budgets.delete, "budget.delete"),
    list_("/workspaces/<workspace>/budgets", manage("budgets.read"), budgets.list_of_workspace),
    get(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.read"),
        budgets.get_of_workspace,
    ),
    put(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.write"),
        budgets.put_of_workspace,
        PutWorkspaceBudget,
        "budget.put",
    ),
    delete(
        "/workspaces/<workspace>/budgets/<interval>",
        manage("budgets.write"),
        budgets.delete_of_workspace,
        "budget.delete",
    ),
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
    ),
)
