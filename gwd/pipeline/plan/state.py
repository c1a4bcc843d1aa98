"""What plans are computed from, cached on the loop: the catalog with opened vendor keys, and organizations' settings.

Both carry the revision they were read at. Each admission compares revisions in its own transaction; on a mismatch it
asks for a fresh look, so nothing here can outlive the change of a right or a price.
"""

import random
from collections.abc import Mapping

from gwd.catalog import snapshot
from gwd.catalog.snapshot import Catalog, Model
from gwd.core.clock import Clock
from gwd.core.vendor_format import VendorFormat
from gwd.credentials import service as credentials
from gwd.credentials.service import VendorKey
from gwd.credentials.vault import Vault
from gwd.health.health import Health
from gwd.health.record import (
    EndpointCircuitRecord,
    EndpointHealthRecord,
    endpoint_record,
    endpoint_records,
)
from gwd.orgs.settings import OrganizationState
from gwd.orgs.settings import settings as organization_state
from gwd.pipeline.plan.plan_input import PlanInput
from gwd.pipeline.plan.resolution import not_allowed, not_found
from gwd.store import Connection, Store


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
    ) -> None:
        self._store = store
        self._vault = vault
        self._environment = environment
        self.health = health
        self._clock = clock
        self._default_output_bound = default_output_bound
        self._formats = formats
        self._rng = random.Random()  # noqa: S311 - load balancing, not a secret
        self._catalog: Catalog | None = None
        self._revision: int | None = None  # of the last catalog, also while it is to be read again
        self._vendor_keys: dict[str, tuple[VendorKey, ...]] = {}
        self._organizations: dict[str, OrganizationState] = {}

    async def plan_input(
        self, organization_id: str, allowed_models: tuple[str, ...] | None
    ) -> PlanInput:
        """The input of a caller's plan, from the cache where it is warm."""
        catalog = self._catalog or await self.load()
        organization = self._organizations.get(organization_id)
        if organization is None:
            organization = await self._store.read(organization_state, organization_id)
            self._organizations[organization_id] = organization
        return PlanInput(
            catalog=catalog,
            vendor_keys=self._vendor_keys,
            organization=organization,
            allowed_models=allowed_models,
            health=self.health,
            now_us=self._clock.now_us(),
            now_s=self._clock.monotonic_s(),
            rng=self._rng,
            default_output_bound=self._default_output_bound,
        )

    async def load(self) -> Catalog:
        """Read the catalog and open the vendor keys now."""
        catalog, keys = await self._store.read(self._read)
        grouped: dict[str, tuple[VendorKey, ...]] = {}
        for key in keys:
            grouped[key.provider] = (*grouped.get(key.provider, ()), key)
        if catalog.revision != self._revision:
            known = {k.id: k.updated_at_us for of in self._vendor_keys.values() for k in of}
            self.health.forget_credentials(k.id for k in keys if known.get(k.id) != k.updated_at_us)
            self.health.forget_endpoints(
                {e.id for m in catalog.models.values() for e in m.endpoints}
            )
        self.health.trouble.known(key.id for key in keys if key.in_trouble)
        self._catalog, self._revision, self._vendor_keys = catalog, catalog.revision, grouped
        return catalog

    async def reload(self) -> None:
        """Read everything again, the files of vendor keys too; keys that a vendor refused get a new chance."""
        self.forget()
        await self.load()
        self.health.forget_credentials()

    def write_trouble(self) -> None:
        """Once a second: put on the credentials' records what their vendors said."""
        news = self.health.trouble.take()
        if news:
            self._store.submit(credentials.note_trouble, news)

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

    async def model(
        self, name: str, organization_id: str, allowed_models: tuple[str, ...] | None
    ) -> Model:
        """The model of a name, for a caller that only asks of it. Raises ModelNotFound, ModelNotAllowed."""
        plan_input = await self.plan_input(organization_id, allowed_models)
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
        """The platform's keys by provider, as the last load opened them."""
        return self._vendor_keys

    def key_problem(self, credential_id: str, key_ref: str | None) -> str | None:
        """Why a platform credential cannot be used: a reference is looked at now, a stored key was at the last load."""
        if key_ref is not None:
            return credentials.referenced(key_ref, self._environment)[1]
        known = (key for keys in self._vendor_keys.values() for key in keys)
        return next((key.problem for key in known if key.id == credential_id), None)

    def _read(self, connection: Connection) -> tuple[Catalog, list[VendorKey]]:
        return (
            snapshot.load(connection, self._formats),
            credentials.platform_keys(connection, self._vault, self._environment),
        )
