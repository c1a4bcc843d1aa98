"""Endpoints: a model as a provider serves it."""

from typing import Any

from msgspec import UNSET

from gwd.catalog import inputs, prices, providers
from gwd.catalog.inputs import EndpointInput, EndpointPatch
from gwd.catalog.prices import PriceVersion
from gwd.catalog.record import EndpointRecord, EndpointStatus, dated_prices
from gwd.catalog.snapshot import raise_revision
from gwd.catalog.tables import EndpointTable, ModelTable
from gwd.core.clock import iso
from gwd.core.errors import AlreadyExists, InvalidValue, NotFound
from gwd.core.ids import mint
from gwd.store import Connection


def create(
    connection: Connection, body: EndpointInput, *, allow_http: bool, now_us: int
) -> EndpointRecord:
    """Raises InvalidValue for an unknown model or provider, AlreadyExists for a taken tag."""
    if connection.first(ModelTable.select().where(ModelTable.id == body.model)) is None:
        raise InvalidValue(f"`model`: no model `{body.model}`; create it first", param="model")
    providers.require(connection, body.provider)
    tag = inputs.check_tag(body.tag or body.provider)
    _check_free(connection, body.model, tag)
    row_id = mint("ep_")
    connection.run(
        EndpointTable.insert(
            id=row_id,
            model=body.model,
            provider=body.provider,
            tag=tag,
            upstream_model=inputs.check_name(body.upstream_model, "upstream_model"),
            base_url=body.base_url and inputs.check_base_url(body.base_url, allow_http=allow_http),
            context_length=body.context_length,
            max_completion_tokens=body.max_completion_tokens,
            supported_parameters=body.supported_parameters,
            flags=inputs.check_flags(body.flags),
            weight=inputs.check_weight(body.weight),
            disabled=body.disabled,
            draining=False,
            created_at=now_us,
            updated_at=now_us,
        )
    )
    prices.begin(
        connection,
        body.model,
        endpoint_id=row_id,
        pricing=body.pricing,
        tiers=body.pricing_tiers,
        accept=body.accept,
        now_us=now_us,
    )
    raise_revision(connection)
    return get(connection, row_id, now_us=now_us)


def get(connection: Connection, endpoint_id: str, *, now_us: int) -> EndpointRecord:
    return _record(connection, _row(connection, endpoint_id), now_us)


def upstream_models(connection: Connection) -> dict[str, str]:
    """What the provider calls the model, by endpoint."""
    rows = connection.run(EndpointTable.select(EndpointTable.id, EndpointTable.upstream_model))
    return {row.id: row.upstream_model for row in rows}


def list_(
    connection: Connection,
    *,
    limit: int,
    offset: int,
    now_us: int,
    model: str | None = None,
    provider: str | None = None,
) -> tuple[list[EndpointRecord], int]:
    query = EndpointTable.select()
    if model is not None:
        query = query.where(EndpointTable.model == model)
    if provider is not None:
        query = query.where(EndpointTable.provider == provider)
    rows = list(
        connection.run(query.order_by(EndpointTable.created_at).limit(limit).offset(offset))
    )
    return [_record(connection, row, now_us) for row in rows], connection.count(query)


def patch(
    connection: Connection, endpoint_id: str, body: EndpointPatch, *, allow_http: bool, now_us: int
) -> EndpointRecord:
    """A price given here is a version of the endpoint's own; `pricing: null` goes back to the model's."""
    row = _row(connection, endpoint_id)
    changes: dict[str, Any] = {"updated_at": now_us}
    if body.upstream_model is not UNSET:
        changes["upstream_model"] = inputs.check_name(body.upstream_model, "upstream_model")
    if body.tag is not UNSET and body.tag != row.tag:
        changes["tag"] = inputs.check_tag(body.tag)
        _check_free(connection, row.model, body.tag)
    if body.base_url is not UNSET:
        changes["base_url"] = body.base_url and inputs.check_base_url(
            body.base_url, allow_http=allow_http
        )
    if body.context_length is not UNSET:
        changes["context_length"] = body.context_length
    if body.max_completion_tokens is not UNSET:
        changes["max_completion_tokens"] = body.max_completion_tokens
    if body.supported_parameters is not UNSET:
        changes["supported_parameters"] = body.supported_parameters
    if body.flags is not UNSET:
        changes["flags"] = inputs.check_flags(body.flags or {})
    if body.weight is not UNSET:
        changes["weight"] = inputs.check_weight(body.weight)
    if body.disabled is not UNSET:
        changes["disabled"] = body.disabled
        changes["draining"] = False
    connection.run(EndpointTable.update(changes).where(EndpointTable.id == endpoint_id))
    prices.change(
        connection,
        row.model,
        endpoint_id=endpoint_id,
        pricing=body.pricing,
        tiers=body.pricing_tiers,
        accept=body.accept,
        effective_at_us=inputs.effective_at(body.effective_at),
        now_us=now_us,
    )
    raise_revision(connection)
    return get(connection, endpoint_id, now_us=now_us)


def drain(connection: Connection, endpoint_id: str, *, now_us: int) -> EndpointRecord:
    """No new request goes to it; running ones finish. Enabling it again ends the drain."""
    _row(connection, endpoint_id)
    connection.run(
        EndpointTable.update(draining=True, updated_at=now_us).where(
            EndpointTable.id == endpoint_id
        )
    )
    raise_revision(connection)
    return get(connection, endpoint_id, now_us=now_us)


def delete(connection: Connection, endpoint_id: str) -> None:
    _row(connection, endpoint_id)
    connection.run(EndpointTable.delete().where(EndpointTable.id == endpoint_id))
    raise_revision(connection)


def _check_free(connection: Connection, model: str, tag: str) -> None:
    taken = EndpointTable.select().where(
        (EndpointTable.model == model) & (EndpointTable.tag == tag)
    )
    if connection.first(taken):
        raise AlreadyExists(
            f"model `{model}` has an endpoint `{tag}`; give this one another tag", param="tag"
        )


def _row(connection: Connection, endpoint_id: str) -> Any:
    row = connection.first(EndpointTable.select().where(EndpointTable.id == endpoint_id))
    if row is None:
        raise NotFound("no such endpoint")
    return row


def _record(connection: Connection, row: Any, now_us: int) -> EndpointRecord:
    own = prices.of(connection, row.model, row.id)
    dated = dated_prices(own, now_us)
    return EndpointRecord(
        id=row.id,
        object="endpoint",
        model=row.model,
        provider=row.provider,
        tag=row.tag,
        upstream_model=row.upstream_model,
        base_url=row.base_url,
        pricing=dated.pricing,
        pricing_tiers=dated.pricing_tiers,
        prices=dated.prices,
        context_length=row.context_length,
        max_completion_tokens=row.max_completion_tokens,
        supported_parameters=row.supported_parameters,
        flags=row.flags,
        weight=row.weight,
        disabled=row.disabled,
        status=_status(connection, row, own, now_us),
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
    )


def _status(
    connection: Connection, row: Any, own: list[PriceVersion], now_us: int
) -> EndpointStatus:
    if row.disabled:
        return "disabled"
    if row.draining:
        return "draining"
    model = connection.first(ModelTable.select().where(ModelTable.id == row.model))
    dated = prices.for_endpoint(own, prices.of(connection, row.model, None))
    held = [version for at_us, version in dated if at_us <= now_us]
    is_embedding = model.output_modalities == ["embeddings"]
    if not held or not held[-1] or not prices.is_complete(held[-1], is_embedding=is_embedding):
        return "unpriced"
    return "live"
