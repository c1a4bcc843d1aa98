"""/catalog: providers, models, endpoints and the platform's vendor keys, written by the operator."""

import msgspec

from gwd.api.management import Answer, Call, deleted, listed, one
from gwd.api.query import Flag, Moment, Query, Text
from gwd.catalog import endpoints, models, providers
from gwd.catalog.record import ProviderRecord
from gwd.credentials import service as credentials
from gwd.credentials.record import CredentialRecord
from gwd.management import price_book
from gwd.orgs import rights
from gwd.store import Connection

OF_ENDPOINTS = (
    Query("model", Text(), "Only endpoints of this model."),
    Query("provider", Text(), "Only endpoints of this provider."),
)
OF_THE_BOOK = (
    Query("effective_at", Moment(), "Compare from this time on; now otherwise."),
    Query("extras", Flag(), "Compare extras as well that are not sold so far.", default=False),
    Query("new", Flag(), "Name the models of the book that the catalog lacks.", default=False),
)
OF_PROVIDER = Query("provider", Text(), "Only vendor keys of this provider.")


def create_provider(connection: Connection, call: Call) -> Answer:
    """Add a provider."""
    record = providers.create(
        connection,
        call.body,
        formats=call.node.formats,
        allow_http=call.node.settings.upstream.allow_http,
        now_us=call.now_us,
    )
    return one(record, status=201, subject=("provider", record.slug))


def list_providers(connection: Connection, call: Call) -> Answer:
    """All providers."""
    limit, offset = call.page()
    records, total = providers.list_(connection, limit=limit, offset=offset)
    return listed([_shown(record, call) for record in records], total)


def get_provider(connection: Connection, call: Call) -> Answer:
    """One provider."""
    return one(_shown(providers.get(connection, call.path["slug"]), call))


def patch_provider(connection: Connection, call: Call) -> Answer:
    """Change a provider."""
    slug = call.path["slug"]
    record = providers.patch(
        connection,
        slug,
        call.body,
        formats=call.node.formats,
        allow_http=call.node.settings.upstream.allow_http,
        now_us=call.now_us,
    )
    return one(record, subject=("provider", slug))


def delete_provider(connection: Connection, call: Call) -> Answer:
    """Delete a provider that has no endpoints."""
    slug = call.path["slug"]
    providers.delete(connection, slug)
    return deleted("provider", slug)


def _shown(provider: ProviderRecord, call: Call) -> ProviderRecord:
    """What a header holds is told to those who may set it; the others see that there is one."""
    if rights.allowed(call.caller, "catalog.write") == "all":
        return provider
    return msgspec.structs.replace(provider, headers=dict.fromkeys(provider.headers, "***"))


def create_model(connection: Connection, call: Call) -> Answer:
    """Add a model."""
    record = models.create(connection, call.body, now_us=call.now_us)
    return one(record, status=201, subject=("model", record.id))


def list_models(connection: Connection, call: Call) -> Answer:
    """All models, with their prices."""
    limit, offset = call.page()
    return listed(*models.list_(connection, limit=limit, offset=offset, now_us=call.now_us))


def get_model(connection: Connection, call: Call) -> Answer:
    """One model."""
    return one(models.get(connection, call.path["model"], now_us=call.now_us))


def patch_model(connection: Connection, call: Call) -> Answer:
    """Change a model, or give it new prices."""
    model_id = call.path["model"]
    record = models.patch(connection, model_id, call.body, now_us=call.now_us)
    return one(record, subject=("model", model_id))


def delete_model(connection: Connection, call: Call) -> Answer:
    """Delete a model that has no endpoints."""
    model_id = call.path["model"]
    models.delete(connection, model_id, now_us=call.now_us)
    return deleted("model", model_id)


def diff_prices(connection: Connection, call: Call) -> Answer:
    """Where prices are not those of the shipped price book, and what taking them over does."""
    at_us = max(call.query.get("effective_at", call.now_us), call.now_us)
    record = price_book.diff(
        connection,
        at_us=at_us,
        now_us=call.now_us,
        extras=call.query["extras"],
        with_new=call.query["new"],
    )
    return one(record)


def apply_prices(connection: Connection, call: Call) -> Answer:
    """Take prices of the shipped price book over, all or those of the models named; whole or nothing."""
    records = price_book.apply(
        connection,
        call.body,
        allow_http=call.node.settings.upstream.allow_http,
        now_us=call.now_us,
    )
    changed = sorted({record.model for record in records})
    answer = listed(records, len(records))
    if not changed:
        return answer
    details = {"models": changed, "accepted": sorted(call.body.accept)}
    return msgspec.structs.replace(answer, subject=("catalog", None), details=details)


def price_effect(connection: Connection, call: Call) -> Answer:
    """What another price of a model would change, and what it does to the last 30 days. Nothing is changed."""
    records = price_book.effect(connection, call.body, now_us=call.now_us)
    return listed(records, len(records))


def create_endpoint(connection: Connection, call: Call) -> Answer:
    """Add an endpoint."""
    record = endpoints.create(
        connection,
        call.body,
        allow_http=call.node.settings.upstream.allow_http,
        now_us=call.now_us,
    )
    return one(record, status=201, subject=("endpoint", record.id))


def list_endpoints(connection: Connection, call: Call) -> Answer:
    """All endpoints: which provider serves which model."""
    limit, offset = call.page()
    return listed(
        *endpoints.list_(
            connection,
            limit=limit,
            offset=offset,
            now_us=call.now_us,
            model=call.query.get("model"),
            provider=call.query.get("provider"),
        )
    )


def get_endpoint(connection: Connection, call: Call) -> Answer:
    """One endpoint."""
    return one(endpoints.get(connection, call.path["endpoint"], now_us=call.now_us))


def patch_endpoint(connection: Connection, call: Call) -> Answer:
    """Change an endpoint, or give it prices of its own."""
    endpoint_id = call.path["endpoint"]
    record = endpoints.patch(
        connection,
        endpoint_id,
        call.body,
        allow_http=call.node.settings.upstream.allow_http,
        now_us=call.now_us,
    )
    return one(record, subject=("endpoint", endpoint_id))


def drain_endpoint(connection: Connection, call: Call) -> Answer:
    """Let an endpoint finish what it does, and send it nothing more."""
    endpoint_id = call.path["endpoint"]
    record = endpoints.drain(connection, endpoint_id, now_us=call.now_us)
    return one(record, subject=("endpoint", endpoint_id))


def delete_endpoint(connection: Connection, call: Call) -> Answer:
    """Delete an endpoint."""
    endpoint_id = call.path["endpoint"]
    endpoints.delete(connection, endpoint_id)
    return deleted("endpoint", endpoint_id)


def create_credential(connection: Connection, call: Call) -> Answer:
    """Add a vendor key."""
    record = credentials.create(connection, call.node.vault, call.body, now_us=call.now_us)
    (shown,) = _with_problems(connection, call, [record])
    return one(shown, status=201, subject=("credential", record.id))


def list_credentials(connection: Connection, call: Call) -> Answer:
    """All vendor keys; their secrets are never shown."""
    limit, offset = call.page()
    records, total = credentials.list_(
        connection, limit=limit, offset=offset, provider=call.query.get("provider")
    )
    return listed(_with_problems(connection, call, records), total)


def get_credential(connection: Connection, call: Call) -> Answer:
    """One vendor key."""
    record = credentials.get(connection, call.path["credential"])
    return one(*_with_problems(connection, call, [record]))


def _with_problems(
    connection: Connection, call: Call, records: list[CredentialRecord]
) -> list[CredentialRecord]:
    """With why the daemon cannot use them, so that a reference that leads nowhere is told when it is set."""
    found = call.node.state.key_problems(connection, [record.id for record in records])
    return [msgspec.structs.replace(record, problem=found.get(record.id)) for record in records]


def patch_credential(connection: Connection, call: Call) -> Answer:
    """Change a vendor key."""
    credential_id = call.path["credential"]
    record = credentials.patch(
        connection, call.node.vault, credential_id, call.body, now_us=call.now_us
    )
    (shown,) = _with_problems(connection, call, [record])
    return one(shown, subject=("credential", credential_id))


def delete_credential(connection: Connection, call: Call) -> Answer:
    """Delete a vendor key."""
    credential_id = call.path["credential"]
    credentials.delete(connection, credential_id)
    return deleted("credential", credential_id)
