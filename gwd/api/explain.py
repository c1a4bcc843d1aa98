"""POST /route/explain and /estimate: what would become of a request, told without serving it.

Both are free and nothing is written; like counting of tokens they have a rate window of their own.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gwd.api.inference import rate_limited
from gwd.api.management import Answer, Call, one
from gwd.api.readiness import require_serving
from gwd.core.errors import GatewayError, InvalidRequest, InvalidValue, MissingParameter
from gwd.core.fields import Id
from gwd.core.request import DialectName, Request
from gwd.dialects.base import Dialect
from gwd.dialects.extensions import with_model
from gwd.dialects.responses import Responses
from gwd.dialects.table import DIALECTS
from gwd.keys import admission as keys
from gwd.keys import service
from gwd.keys.admission import KeyState
from gwd.keys.policy import KeyPolicy
from gwd.keys.rate_limit import Refused, explain_bucket
from gwd.orgs import workspaces
from gwd.orgs.settings import default_rate_limit, settings
from gwd.pipeline.admit.verdict import Payer
from gwd.pipeline.explain.estimate import estimate_of
from gwd.pipeline.explain.explanation import explanation_of
from gwd.pipeline.explain.look import Look, look_at
from gwd.pipeline.plan.plan_input import Asker
from gwd.replay.items import KeyItems
from gwd.store import Connection

_BY_NAME: Final = {dialect.name: dialect for dialect in DIALECTS}
_ANYTHING: Final = "Hello."
_NONE: Final = msgspec.Raw(b"null")


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that is not to be served: as it would be sent, or a model alone."""

    request: Annotated[
        msgspec.Raw,
        Meta(
            description="The body of a request to a model, as it would be sent.",
            extra_json_schema={"type": ["object", "null"]},
        ),
    ] = msgspec.field(default_factory=lambda: _NONE)
    dialect: Annotated[
        DialectName | None,
        Meta(description="What the request is written in. Null is chat_completions."),
    ] = None
    model: Annotated[
        str | None,
        Meta(description="In place of `request`: a model or alias, asked for a short answer."),
    ] = None
    key_id: Annotated[
        Id | None,
        Meta(
            description="The inference key that would ask, by id or hash; for management keys. Null is none."
        ),
    ] = None
    workspace_id: Annotated[
        Id | None,
        Meta(
            description="The workspace in which it would be asked, where no key is named; for management keys."
        ),
    ] = None


class _Asker(msgspec.Struct, frozen=True, kw_only=True):
    """For whom it is asked: whose limits count, and the key's own state where one is named."""

    payer: Payer
    key: KeyState | None
    policy: KeyPolicy
    rate_limit_per_minute: int


async def explain(call: Call) -> Answer:
    """Say what would become of a request: who would be tried, in which order, and what would refuse it.

    The plan is made as for a request that is served, and every check is asked, not only the first that refuses.
    Nothing is held, sent, recorded or counted against the key's minute. An inference key asks for itself; a management
    key for its organization, a workspace, or a key that it may read.
    """
    look, asker, before = await _look(call)
    sees_credentials = call.caller.role == "operator"
    return one(explanation_of(look, asker.payer, before=before, sees_credentials=sees_credentials))


async def estimate(call: Call) -> Answer:
    """Say how many tokens a request has and what it would cost, from and to.

    For the endpoint that would be tried first, and for the dearest. Takes what POST /route/explain takes.
    """
    look, _, before = await _look(call)
    return one(estimate_of(look, before))


async def _look(call: Call) -> tuple[Look, _Asker, list[GatewayError]]:
    node, caller = call.node, call.caller
    bucket = explain_bucket(caller.family_id)
    now_s = node.clock.monotonic_s()
    counted = node.limiter.admit(bucket, caller.rate_limit_per_minute, now_s)
    if isinstance(counted, Refused):
        raise rate_limited(counted)
    asker = await node.store.read(_asker, call)
    request = with_model(await _request(call, asker.payer), asker.policy.text_model)
    before: list[GatewayError] = []
    if asker.key is not None:
        full = node.limiter.look(asker.payer.family_id, asker.rate_limit_per_minute, now_s)
        before += [] if full is None else [rate_limited(full)]
    try:
        require_serving(node)
    except GatewayError as refusal:
        before.append(refusal)
    look = await look_at(
        node.line,
        request,
        asker.payer,
        asker.policy,
        Asker(
            family_id=asker.payer.family_id,
            workspace_id=asker.payer.workspace_id,
            user_id=None if asker.key is None else asker.key.user_id,
        ),
    )
    return look, asker, before


def _asker(connection: Connection, call: Call) -> _Asker:
    """Whose limits are asked. Raises NotFound for a key or workspace that the caller does not reach."""
    caller, question = call.caller, call.body
    workspace_id = caller.workspace_id
    if caller.kind == "inference":
        for name in ("key_id", "workspace_id"):
            if getattr(question, name) is not None:
                raise InvalidValue(
                    f"`{name}`: an inference key asks for itself; leave it out", param=name
                )
        key_id: str | None = caller.key_id
    elif question.key_id is not None:
        if question.workspace_id is not None:
            raise InvalidValue(
                "`key_id` and `workspace_id` exclude each other: a key has its workspace",
                param="workspace_id",
            )
        key_id = service.get(connection, caller.organization_id, question.key_id, actor=caller).id
    else:
        key_id = None
        if question.workspace_id is not None:
            found = workspaces.get(connection, caller.organization_id, question.workspace_id)
            workspaces.require_within(caller, found.id)
            workspace_id = found.id
    key = None if key_id is None else keys.state(connection, key_id)
    if key is None:
        payer = Payer(organization_id=caller.organization_id, workspace_id=workspace_id)
        return _Asker(
            payer=payer,
            key=None,
            policy=KeyPolicy(),
            rate_limit_per_minute=caller.rate_limit_per_minute,
        )
    if key.kind != "inference":
        raise InvalidValue(
            "`key_id` names a management key, which never asks a model; name an inference key",
            param="key_id",
        )
    organization = settings(connection, key.organization_id).settings
    default = default_rate_limit(organization, call.node.issuing.rate_limit_ceiling)
    own = key.rate_limit_per_minute
    return _Asker(
        payer=Payer(
            organization_id=key.organization_id,
            workspace_id=key.workspace_id,
            key_id=key.id,
            family_id=key.family_id,
        ),
        key=key,
        policy=keys.policy(connection, key.id) or KeyPolicy(),
        rate_limit_per_minute=default if own is None else min(own, default),
    )


async def _request(call: Call, payer: Payer) -> Request:
    """The request that is asked about. Raises what its dialect raises."""
    question: Question = call.body
    dialect, body = await _body(call, question)
    if isinstance(dialect, Responses) and payer.key_id is not None:
        dialect = dialect.remembering(KeyItems(call.node.items, payer.key_id))
    try:
        return await call.node.line.offload.run(len(body), dialect.parse, body, call.headers)
    except RecursionError:
        raise InvalidRequest("the request is nested too deeply", param="request") from None


async def _body(call: Call, question: Question) -> tuple[Dialect, bytes]:
    if question.model is None:
        if question.request == _NONE:
            raise MissingParameter(
                "`request` is required: the body of a request, or `model` in its place",
                param="request",
            )
        return _BY_NAME[question.dialect or "chat_completions"], bytes(question.request)
    if question.request != _NONE or question.dialect is not None:
        raise InvalidValue(
            "`model` stands alone: give it, or `request` and its `dialect`", param="model"
        )
    # An embedding model is asked what such models are asked.
    known = (await call.node.state.catalog()).resolve(question.model.partition(":")[0], call.now_us)
    if known is not None and known.is_embedding:
        return _BY_NAME["embeddings"], msgspec.json.encode(
            {"model": question.model, "input": _ANYTHING}
        )
    message = {"role": "user", "content": _ANYTHING}
    body = {"model": question.model, "messages": [message]}
    return _BY_NAME["chat_completions"], msgspec.json.encode(body)
