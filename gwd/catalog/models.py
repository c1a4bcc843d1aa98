"""Models: records, lifecycle dates, aliases, prices."""

from typing import Any

from msgspec import UNSET

from gwd.catalog import inputs, lifecycle, prices
from gwd.catalog.inputs import ModelInput, ModelPatch
from gwd.catalog.lifecycle import Lifecycle
from gwd.catalog.record import EndpointOfModel, ModelRecord, dated_prices
from gwd.catalog.snapshot import raise_revision
from gwd.catalog.tables import AliasTable, EndpointTable, ModelTable
from gwd.core.clock import iso, iso_or_none
from gwd.core.errors import AlreadyExists, Conflict, InvalidValue, NotFound
from gwd.store import Connection


def create(connection: Connection, body: ModelInput, *, now_us: int) -> ModelRecord:
    """Raises AlreadyExists for a taken id or alias, InvalidValue naming the field otherwise."""
    model_id = inputs.check_model_id(body.id)
    if connection.first(ModelTable.select().where(ModelTable.id == model_id)):
        raise AlreadyExists(f"model `{model_id}` exists; patch it instead", param="id")
    is_embedding = body.output_modalities == ["embeddings"]
    connection.run(
        ModelTable.insert(
            id=model_id,
            name=inputs.check_name(body.name),
            vendor=inputs.check_name(body.vendor, "vendor"),
            description=body.description,
            family=body.family,
            aliases=inputs.check_aliases(body.aliases),
            context_length=body.context_length,
            max_completion_tokens=_completion_tokens(body.max_completion_tokens, is_embedding),
            default_max_tokens=body.default_max_tokens,
            supported_parameters=body.supported_parameters,
            input_modalities=body.input_modalities,
            output_modalities=body.output_modalities,
            is_moderated=body.is_moderated,
            released_at=inputs.moment(body.released_at, "released_at"),
            deprecated_at=inputs.moment(body.deprecated_at, "deprecated_at"),
            retired_at=inputs.moment(body.retired_at, "retired_at"),
            successor=body.successor,
            created_at=now_us,
            updated_at=now_us,
        )
    )
    _set_aliases(connection, model_id, body.aliases)
    _check_lifecycle(connection, model_id, now_us)
    prices.begin(
        connection,
        model_id,
        endpoint_id=None,
        pricing=body.pricing,
        tiers=body.pricing_tiers,
        accept=body.accept,
        now_us=now_us,
    )
    raise_revision(connection)
    return get(connection, model_id, now_us=now_us)


def get(connection: Connection, model_id: str, *, now_us: int) -> ModelRecord:
    return _record(connection, _row(connection, model_id), now_us)


def list_(
    connection: Connection, *, limit: int, offset: int, now_us: int
) -> tuple[list[ModelRecord], int]:
    rows = list(
        connection.run(ModelTable.select().order_by(ModelTable.id).limit(limit).offset(offset))
    )
    return [_record(connection, row, now_us) for row in rows], connection.count(ModelTable.select())


def patch(connection: Connection, model_id: str, body: ModelPatch, *, now_us: int) -> ModelRecord:
    """A price here appends a version; every other field is replaced."""
    row = _row(connection, model_id)
    changes: dict[str, Any] = {"updated_at": now_us}
    for field in ("name", "vendor"):
        if getattr(body, field) is not UNSET:
            changes[field] = inputs.check_name(getattr(body, field), field)
    if body.max_completion_tokens is not UNSET:
        changes["max_completion_tokens"] = _completion_tokens(
            body.max_completion_tokens, row.output_modalities == ["embeddings"]
        )
    for field in (
        "context_length",
        "supported_parameters",
        "input_modalities",
        "output_modalities",
        "description",
        "family",
        "default_max_tokens",
        "is_moderated",
        "successor",
    ):
        if getattr(body, field) is not UNSET:
            changes[field] = getattr(body, field)
    for field in ("released_at", "deprecated_at", "retired_at"):
        if getattr(body, field) is not UNSET:
            changes[field] = inputs.moment(getattr(body, field), field)
    if body.aliases is not UNSET:
        changes["aliases"] = inputs.check_aliases(body.aliases or [])
        _set_aliases(connection, model_id, changes["aliases"])
    connection.run(ModelTable.update(changes).where(ModelTable.id == model_id))
    if changes.keys() & {"deprecated_at", "retired_at", "successor"}:
        _check_lifecycle(connection, model_id, now_us)
    prices.change(
        connection,
        model_id,
        endpoint_id=None,
        pricing=body.pricing,
        tiers=body.pricing_tiers,
        accept=body.accept,
        effective_at_us=inputs.effective_at(body.effective_at),
        now_us=now_us,
    )
    raise_revision(connection)
    return get(connection, model_id, now_us=now_us)


def delete(connection: Connection, model_id: str, *, now_us: int) -> None:
    """Raises Conflict while endpoints serve it or another model names it as its successor."""
    _row(connection, model_id)
    served = connection.count(EndpointTable.select().where(EndpointTable.model == model_id))
    if served:
        raise Conflict(f"model `{model_id}` has {served} endpoints; delete them first")
    named = connection.first(ModelTable.select().where(ModelTable.successor == model_id))
    if named is not None:
        raise Conflict(f"model `{model_id}` is the successor of `{named.id}`; change that first")
    connection.run(AliasTable.delete().where(AliasTable.model == model_id))
    connection.run(ModelTable.delete().where(ModelTable.id == model_id))
    prices.end(connection, model_id, now_us=now_us)
    raise_revision(connection)


def retirements(connection: Connection) -> dict[str, str | None]:
    """Every model by id, and when it is retired."""
    rows = connection.run(ModelTable.select().order_by(ModelTable.id))
    return {row.id: iso_or_none(row.retired_at) for row in rows}


def _set_aliases(connection: Connection, model_id: str, aliases: list[str]) -> None:
    connection.run(AliasTable.delete().where(AliasTable.model == model_id))
    for alias in aliases:
        taken = connection.first(AliasTable.select().where(AliasTable.name == alias))
        is_model = connection.first(ModelTable.select().where(ModelTable.id == alias))
        if taken is not None or is_model is not None:
            raise AlreadyExists(f"`aliases`: {alias!r} is taken", param="aliases")
        connection.run(AliasTable.insert(name=alias, model=model_id))


def _check_lifecycle(connection: Connection, model_id: str, now_us: int) -> None:
    """Retirement comes after deprecation, both with a successor that is active, gives the same kind of
    output, and forms no circle."""
    row = _row(connection, model_id)
    if row.deprecated_at is None and row.retired_at is None and row.successor is None:
        return
    if (
        row.deprecated_at is not None
        and row.retired_at is not None
        and row.retired_at <= row.deprecated_at
    ):
        raise InvalidValue("`retired_at` must be after `deprecated_at`", param="retired_at")
    if row.successor is None:
        raise InvalidValue(
            "`successor` is required with `deprecated_at` or `retired_at`", param="successor"
        )
    if row.successor == model_id:
        raise InvalidValue("`successor` must be another model", param="successor")
    lives = {
        other.id: Lifecycle(
            deprecated_at_us=other.deprecated_at,
            retired_at_us=other.retired_at,
            successor=other.successor,
        )
        for other in connection.run(ModelTable.select())
    }
    if row.successor not in lives:
        raise InvalidValue(f"`successor`: no model `{row.successor}`", param="successor")
    state = lives[row.successor].state(now_us)
    if state != "active":
        raise InvalidValue(
            f"`successor`: `{row.successor}` is {state} itself; name an active model",
            param="successor",
        )
    if _row(connection, row.successor).output_modalities != row.output_modalities:
        raise InvalidValue(
            f"`successor`: `{row.successor}` gives another kind of output than `{model_id}`",
            param="successor",
        )
    name: str | None = row.successor
    for _ in range(lifecycle.MAX_SUCCESSORS):
        name = lives[name].successor if name in lives else None
        if name == model_id:
            raise InvalidValue("`successor` leads back to this model", param="successor")


def _completion_tokens(value: int, is_embedding: bool) -> int:  # noqa: FBT001
    if value == 0 and not is_embedding:
        raise InvalidValue(
            "`max_completion_tokens` must be at least 1 for a model that answers with text",
            param="max_completion_tokens",
        )
    return value


def _row(connection: Connection, model_id: str) -> Any:
    row = connection.first(ModelTable.select().where(ModelTable.id == model_id))
    if row is None:
        raise NotFound(f"no model `{model_id}`")
    return row


def _record(connection: Connection, row: Any, now_us: int) -> ModelRecord:
    endpoints = connection.run(EndpointTable.select().where(EndpointTable.model == row.id))
    dated = dated_prices(prices.of(connection, row.id, None), now_us)
    return ModelRecord(
        id=row.id,
        object="model",
        name=row.name,
        vendor=row.vendor,
        description=row.description,
        family=row.family,
        aliases=row.aliases,
        context_length=row.context_length,
        max_completion_tokens=row.max_completion_tokens,
        default_max_tokens=row.default_max_tokens,
        supported_parameters=row.supported_parameters,
        input_modalities=row.input_modalities,
        output_modalities=row.output_modalities,
        is_moderated=row.is_moderated,
        pricing=dated.pricing,
        pricing_tiers=dated.pricing_tiers,
        prices=dated.prices,
        released_at=iso_or_none(row.released_at),
        deprecated_at=iso_or_none(row.deprecated_at),
        retired_at=iso_or_none(row.retired_at),
        successor=row.successor,
        endpoints=[
            EndpointOfModel(id=e.id, provider=e.provider, tag=e.tag, disabled=e.disabled)
            for e in endpoints
        ],
        created_at=iso(row.created_at),
        updated_at=iso(row.updated_at),
    )
