"""The table of routes: for each the method, the path, who may call it, and what it does. Nothing else is served.

Inference and the public reading of models are in `app`; everything else that is served is here.
"""

from typing import Final

from gwd.api import (
    clock,
    content_log,
    doctor,
    explain,
    generations,
    invitations,
    lifecycle,
    operator,
    provider_models,
    provider_probe,
    secrets,
)
from gwd.api.access import any_key_with, manage
from gwd.api.byok_routes import BYOK_ROUTES, BYOK_TEST
from gwd.api.catalog_routes import CATALOG_ROUTES
from gwd.api.clock import AcceptClock
from gwd.api.doctor_record import DoctorRecord
from gwd.api.key_routes import KEY_ROUTES
from gwd.api.money_routes import LEDGER_VERIFY, MONEY_ROUTES
from gwd.api.notification_routes import LIVE_NOTIFICATION_ROUTES, NOTIFICATION_ROUTES
from gwd.api.operator_record import ReloadRecord, StatusRecord
from gwd.api.people_routes import PEOPLE_ROUTES
from gwd.api.route import LiveRoute, Nothing, OpenRoute, Route
from gwd.api.shapes import Listed, One
from gwd.health.record import EndpointCircuitRecord
from gwd.management.invitations import AcceptInvitation, LookUpInvitation
from gwd.pipeline.explain.record import EstimateRecord, Explanation

ROUTES: Final[tuple[Route, ...]] = (
    *MONEY_ROUTES,
    *NOTIFICATION_ROUTES,
    *KEY_ROUTES,
    *PEOPLE_ROUTES,
    *CATALOG_ROUTES,
    *BYOK_ROUTES,
)

LIVE_ROUTES: Final[tuple[LiveRoute, ...]] = (
    *LIVE_NOTIFICATION_ROUTES,
    LEDGER_VERIFY,
    LiveRoute(
        method="POST",
        path="/route/explain",
        access=any_key_with("credits.read"),
        handler=explain.explain,
        answers=One[Explanation],
        shape=explain.Question,
        asks=True,
        fails=(404,),
    ),
    LiveRoute(
        method="POST",
        path="/estimate",
        access=any_key_with("credits.read"),
        handler=explain.estimate,
        answers=One[EstimateRecord],
        shape=explain.Question,
        asks=True,
        fails=(404,),
    ),
    LiveRoute(
        method="GET",
        path="/operator/status",
        access=manage("operator"),
        handler=operator.status,
        answers=One[StatusRecord],
    ),
    LiveRoute(
        method="GET",
        path="/operator/doctor",
        access=manage("operator"),
        handler=doctor.look,
        answers=One[DoctorRecord],
    ),
    LiveRoute(
        method="GET",
        path="/operator/clock",
        access=manage("operator"),
        handler=clock.show,
        answers=One[clock.ClockRecord],
    ),
    LiveRoute(
        method="POST",
        path="/operator/clock",
        access=manage("operator"),
        handler=clock.accept,
        answers=One[clock.ClockRecord],
        shape=AcceptClock,
        action="clock.accept",
    ),
    LiveRoute(
        method="GET",
        path="/operator/secrets",
        access=manage("operator"),
        handler=secrets.show,
        answers=One[secrets.SecretsRecord],
    ),
    LiveRoute(
        method="GET",
        path="/operator/secrets/verify",
        access=manage("operator"),
        handler=secrets.verify,
        answers=One[secrets.VerifiedSecretsRecord],
    ),
    LiveRoute(
        method="POST",
        path="/operator/secrets/rotate",
        access=manage("operator"),
        handler=secrets.rotate,
        answers=One[secrets.SecretsRecord],
        shape=Nothing,
        action="secrets.rotate",
        fails=(409,),
    ),
    LiveRoute(
        method="POST",
        path="/operator/secrets/prune",
        access=manage("operator"),
        handler=secrets.prune,
        answers=One[secrets.SecretsRecord],
        shape=secrets.PruneSecrets,
        action="secrets.prune",
        fails=(409,),
    ),
    LiveRoute(
        method="POST",
        path="/operator/reload",
        access=manage("operator"),
        handler=operator.reload,
        answers=One[ReloadRecord],
        shape=Nothing,
        action="node.reload",
    ),
    LiveRoute(
        method="GET",
        path="/catalog/endpoints/<endpoint>/health",
        access=manage("operator"),
        handler=operator.endpoint_health,
        answers=One[EndpointCircuitRecord],
    ),
    LiveRoute(
        method="GET",
        path="/catalog/lifecycle",
        access=manage("catalog.read"),
        handler=lifecycle.coming,
        answers=Listed[lifecycle.ComingEvent],
    ),
    LiveRoute(
        method="POST",
        path="/catalog/providers/<slug>/test",
        access=manage("catalog.write"),
        handler=provider_probe.probe,
        answers=One[provider_probe.ProbeRecord],
        shape=Nothing,
        action="provider.test",
        fails=(409, 502),
    ),
    BYOK_TEST,
    LiveRoute(
        method="GET",
        path="/generation/content",
        access=manage("content_log.read"),
        handler=content_log.read,
        query=(generations.BY_ID,),
        answers=One[content_log.LoggedRequest],
        action="content_log.read",
        fails=(404, 409),
    ),
    LiveRoute(
        method="DELETE",
        path="/generation/content",
        access=manage("content_log.erase"),
        handler=content_log.erase_one,
        query=(generations.BY_ID,),
        answers=content_log.ErasedRequests,
        action="content_log.erase",
    ),
    LiveRoute(
        method="DELETE",
        path="/content-log",
        access=manage("content_log.erase"),
        handler=content_log.erase,
        query=content_log.WHICH,
        answers=content_log.ErasedRequests,
        action="content_log.erase",
        fails=(404,),
    ),
    LiveRoute(
        method="GET",
        path="/catalog/providers/<slug>/models",
        access=manage("catalog.write"),
        handler=provider_models.list_models,
        answers=provider_models.ProviderModels,
        fails=(409, 502),
    ),
)

OPEN_ROUTES: Final[tuple[OpenRoute, ...]] = (
    OpenRoute(
        method="POST",
        path="/invitations/look-up",
        handler=invitations.look_up,
        shape=LookUpInvitation,
        reads=True,
        answers=One[invitations.OpenInvitation],
        fails=(404,),
    ),
    OpenRoute(
        method="POST",
        path="/invitations/accept",
        handler=invitations.accept,
        shape=AcceptInvitation,
        action="invitation.accept",
        answers=invitations.JoinedOrganization,
        status=201,
        fails=(404, 409),
    ),
)
