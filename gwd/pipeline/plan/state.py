"""What plans are computed from, cached on the loop: the catalog with opened vendor keys, and organizations' settings
with their own keys.

Both carry the revision they were read at. Each admission compares revisions in its own transaction; on a mismatch it
asks for a fresh look, so nothing here can outlive the change of a right or a price.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from gwd.alerts.credential_alerts import note_trouble
from gwd.catalog import snapshot
from gwd.catalog.snapshot import Catalog, Model
from gwd.content_log.logging import Logging, logging_of
from gwd.core.clock import Clock
from gwd.core.vendor_format import VendorFormat
from gwd.credentials import service as credentials
from gwd.credentials.service import VendorKey
from gwd.credentials.trouble import note_used
from gwd.credentials.vault import Vault
from gwd.health.health import Health
from gwd.health.record import (
    EndpointCircuitRecord,
    EndpointHealthRecord,
    endpoint_record,
    endpoint_records,
)
from gwd.keys.admission import families_of
from gwd.keys.policy import KeyPolicy
from gwd.orgs.policy import Policy
from gwd.orgs.settings import OrganizationState
from gwd.orgs.settings import policy as organization_policy
from gwd.orgs.settings import settings as organization_state
from gwd.pipeline.plan.plan_input import NOBODY, Asker, OwnKeys, PlanInput
from gwd.pipeline.plan.resolution import not_allowed, not_found
from gwd.pipeline.plan.stickiness import Conversation, Stickiness, no_conversation
from gwd.store import Connection, Store


class _Organization(msgspec.Struct, frozen=True):
    """An organization as it was read at its revision, with its own keys opened."""

    state: OrganizationState
    policy: Policy | None
    own_keys: OwnKeys
    logging: Logging | None


class PlanningState:
    """One for the node; used from the event loop only."""

    def __init__(
        self,
        *,
        store: Store,
        vault: Vault,
        environment: Mapping[str, str],
        health: Health,
        clock: Clock,
        default_output_bound: int,
        formats: Mapping[str, VendorFormat],
        app_url: str,
    ) -> None:
        self._store = store
        self._vault = vault
        self._environment = environment
        self.health = health
        self.stickiness = Stickiness()
        self._clock = clock
        self._default_output_bound = default_output_bound
        self._formats = formats
        self._app_url = app_url
        self._rng = random.Random()  # noqa: S311 - load balancing, not a secret
        self._catalog: Catalog | None = None
        self._revision: int | None = None  # of the last catalog, also while it is to be read again
        self._vendor_keys: dict[str, tuple[VendorKey, ...]] = {}
        self._organizations: dict[str, _Organization] = {}
        self._edits: dict[str, dict[str, int]] = {}
        """When each own key was last changed, by organization: what the vendors said before that is forgotten."""

    async def plan_input(
        self,
        organization_id: str,
        key: KeyPolicy,
        asker: Asker = NOBODY,
        conversation: Callable[[], Conversation | None] = no_conversation,
    ) -> PlanInput:
        """The input of a caller's plan, from the cache where it is warm."""
        catalog = self._catalog or await self.load()
        organization = self._organizations.get(organization_id)
        if organization is None:
            organization = await self._load_organization(organization_id)
        return PlanInput(
            catalog=catalog,
            vendor_keys=self._vendor_keys,
            own_keys=organization.own_keys,
            asker=asker,
            organization=organization.state,
            policies=tuple(filter(None, (key.restricts, organization.policy))),
            sort=key.sort or organization.state.settings.default_provider_sort,
            health=self.health,
            stickiness=self.stickiness,
            conversation=conversation,
            now_us=self._clock.now_us(),
            now_s=self._clock.monotonic_s(),
            rng=self._rng,
            default_output_bound=self._default_output_bound,
        )

    def logging(self, organization_id: str) -> Logging | None:
        """Which of the organization's requests are stored, as of the last `plan_input` for it; None: nothing is."""
        organization = self._organizations.get(organization_id)
        return None if organization is None else organization.logging

    async def load(self) -> Catalog:
        """Read the catalog and open the platform's vendor keys now; a new catalog has organizations read again, too."""
        catalog, keys = await self._store.read(self._read)
        usable = _by_provider(keys)
        for provider, changed_us in catalog.keyless.items():
            usable[provider] = (credentials.keyless(provider, changed_us),)
        if catalog.revision != self._revision:
            known = {k.id: k.updated_at_us for of in self._vendor_keys.values() for k in of}
            self.health.forget_credentials(
                k.id for of in usable.values() for k in of if known.get(k.id) != k.updated_at_us
            )
            self.health.forget_endpoints(
                {e.id for m in catalog.models.values() for e in m.endpoints}
            )
            self._organizations.clear()
        self.health.trouble.known(keys)
        self._catalog, self._vendor_keys = catalog, usable
        self._revision = catalog.revision
        return catalog

    async def _load_organization(self, organization_id: str) -> _Organization:
        """Read one organization and open its own keys; those that were changed get a new chance."""
        found, keys = await self._store.read(self._read_organization, organization_id)
        known = self._edits.get(organization_id, {})
        self.health.forget_own_keys(
            key.id for key in keys if known.get(key.id, key.updated_at_us) != key.updated_at_us
        )
        self.health.trouble.known(keys)
        self._edits[organization_id] = {key.id: key.updated_at_us for key in keys}
        self._organizations[organization_id] = found
        return found

    async def reload(self) -> None:
        """Read everything again, the files of vendor keys too; keys that a vendor refused get a new chance."""
        self.forget()
        await self.load()
        self.health.forget_credentials()

    def write_trouble(self, *, last: bool = False) -> None:
        """Once a second: put on the credentials' records what their vendors said and when they were used, and tell
        their owners; when they were used last not each time, unless this is the `last` time."""
        trouble = self.health.trouble
        if news := trouble.take():
            self._store.submit(note_trouble, news, app_url=self._app_url)
        if used := trouble.take_used(all_of_it=last):
            self._store.submit(note_used, used)

    def forget(self, organization_id: str | None = None) -> None:
        """Look again at the catalog and at one organization, or at all."""
        self._catalog = None
        if organization_id is None:
            self._organizations.clear()
        else:
            self._organizations.pop(organization_id, None)

    async def catalog(self) -> Catalog:
        """The catalog for reading endpoints such as GET /models."""
        return self._catalog or await self.load()

    async def model(self, name: str, organization_id: str, key: KeyPolicy) -> Model:
        """The model of a name, for a caller that only asks of it. Raises ModelNotFound, ModelNotAllowed."""
        plan_input = await self.plan_input(organization_id, key)
        model = plan_input.catalog.resolve(name.partition(":")[0], plan_input.now_us)
        if model is None:
            raise not_found(name, plan_input.catalog)
        refusal = not_allowed(model, plan_input)
        if refusal is not None:
            raise refusal
        return model

    async def endpoint_records(self, now_us: int) -> list[EndpointHealthRecord]:
        """How every endpoint stands now."""
        return endpoint_records(
            await self.catalog(),
            self._vendor_keys,
            self.health,
            now_us=now_us,
            now_s=self._clock.monotonic_s(),
        )

    async def endpoint_record(self, endpoint_id: str, now_us: int) -> EndpointCircuitRecord | None:
        """How one endpoint stands now, with each credential; None for one that does not exist."""
        return endpoint_record(
            await self.catalog(),
            self._vendor_keys,
            self.health,
            endpoint_id,
            now_us=now_us,
            now_s=self._clock.monotonic_s(),
        )

    async def in_flight(self) -> dict[str, int]:
        """Provider → requests at its endpoints now, of all providers that have endpoints."""
        found: dict[str, int] = {}
        for model in (await self.catalog()).models.values():
            for endpoint in model.endpoints:
                number = self.health.in_flight(endpoint.id)
                found[endpoint.provider] = found.get(endpoint.provider, 0) + number
        return found

    @property
    def vendor_keys(self) -> Mapping[str, tuple[VendorKey, ...]]:
        """The platform's keys by provider, as the last load opened them; of a keyless provider what stands for one."""
        return self._vendor_keys

    def own_key(self, connection: Connection, row: Any) -> VendorKey:
        """An organization's key as a call would use it, opened now."""
        return credentials.own_key(connection, self._vault, self._environment, row)

    def key_problems(self, connection: Connection, ids: Collection[str]) -> dict[str, str]:
        """Why those of the credentials that cannot be used cannot, as it is at this moment."""
        return credentials.problems(connection, self._vault, self._environment, ids)

    def _read(self, connection: Connection) -> tuple[Catalog, list[VendorKey]]:
        return (
            snapshot.load(connection, self._formats),
            credentials.platform_keys(connection, self._vault, self._environment),
        )

    def _read_organization(
        self, connection: Connection, organization_id: str
    ) -> tuple[_Organization, list[VendorKey]]:
        keys = credentials.own_keys(connection, self._vault, self._environment, organization_id)
        hashes = {name for key in keys for name in key.allowed_api_key_hashes or ()}
        own_keys = OwnKeys(
            by_provider=_by_provider(keys),
            families=families_of(connection, organization_id, hashes),
        )
        state = organization_state(connection, organization_id)
        logging = logging_of(connection, organization_id, state.settings.content_log)
        policy = organization_policy(state.settings)
        return _Organization(state, policy, own_keys, logging), keys


def _by_provider(keys: Iterable[VendorKey]) -> dict[str, tuple[VendorKey, ...]]:
    grouped: dict[str, tuple[VendorKey, ...]] = {}
    for key in keys:
        grouped[key.provider] = (*grouped.get(key.provider, ()), key)
    return grouped
