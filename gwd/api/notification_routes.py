"""The routes about alerts: what was raised, where it is told, and how each delivery went."""

from typing import Final

from gwd.alerts.categories import AlertSetting, PatchAlertSetting
from gwd.alerts.deliveries import DeliveryRecord
from gwd.alerts.destinations import DestinationInput, DestinationPatch, DestinationRecord
from gwd.alerts.service import AlertRecord
from gwd.api import events, notifications
from gwd.api.access import manage
from gwd.api.notifications import (
    Redelivered,
    RedeliverInput,
    RotateSecretInput,
    SampleInput,
    SignedDestination,
)
from gwd.api.query import BETWEEN
from gwd.api.route import LiveRoute, Nothing, Route, delete, get, list_, patch, post, walk
from gwd.api.shapes import Deleted, Listed, One, Walked

READ: Final = manage("notifications.read")
WRITE: Final = manage("notifications.write")

NOTIFICATION_ROUTES: Final[tuple[Route, ...]] = (
    walk(
        "/notifications/events",
        READ,
        events.list_,
        *(*events.FILTERS, *BETWEEN),
        answers=Walked[AlertRecord],
    ),
    get(
        "/notifications/events/<event>",
        READ,
        events.get,
        answers=One[AlertRecord],
        fails=(404,),
    ),
    get(
        "/notifications/alerts",
        READ,
        notifications.list_settings,
        answers=Listed[AlertSetting],
    ),
    patch(
        "/notifications/alerts",
        WRITE,
        notifications.patch_setting,
        PatchAlertSetting,
        "alert_setting.patch",
        answers=One[AlertSetting],
        fails=(404,),
    ),
    list_(
        "/notifications/destinations",
        READ,
        notifications.list_destinations,
        answers=Listed[DestinationRecord],
    ),
    post(
        "/notifications/destinations",
        WRITE,
        notifications.create_destination,
        DestinationInput,
        "destination.create",
        answers=SignedDestination,
        status=201,
        before=notifications.check_address,
    ),
    get(
        "/notifications/destinations/<destination>",
        READ,
        notifications.get_destination,
        answers=One[DestinationRecord],
        fails=(404,),
    ),
    patch(
        "/notifications/destinations/<destination>",
        WRITE,
        notifications.patch_destination,
        DestinationPatch,
        "destination.patch",
        answers=One[DestinationRecord],
        fails=(404,),
        before=notifications.check_address,
    ),
    delete(
        "/notifications/destinations/<destination>",
        WRITE,
        notifications.delete_destination,
        "destination.delete",
        answers=Deleted,
        fails=(404,),
    ),
    post(
        "/notifications/destinations/<destination>/enable",
        WRITE,
        notifications.enable_destination,
        Nothing,
        "destination.enable",
        answers=One[DestinationRecord],
        fails=(404,),
    ),
    post(
        "/notifications/destinations/<destination>/disable",
        WRITE,
        notifications.disable_destination,
        Nothing,
        "destination.disable",
        answers=One[DestinationRecord],
        fails=(404,),
    ),
    post(
        "/notifications/destinations/<destination>/rotate-secret",
        WRITE,
        notifications.rotate_secret,
        RotateSecretInput,
        "destination.rotate_secret",
        answers=SignedDestination,
        fails=(404,),
    ),
    walk(
        "/notifications/destinations/<destination>/deliveries",
        READ,
        notifications.list_of_destination,
        *(*notifications.DELIVERY_FILTERS, *BETWEEN),
        answers=Walked[DeliveryRecord],
        fails=(404,),
    ),
    post(
        "/notifications/destinations/<destination>/redeliver",
        WRITE,
        notifications.redeliver_range,
        RedeliverInput,
        "destination.redeliver",
        answers=One[Redelivered],
        fails=(404,),
    ),
    walk(
        "/notifications/deliveries",
        READ,
        notifications.list_deliveries,
        *(notifications.BY_DESTINATION, *notifications.DELIVERY_FILTERS, *BETWEEN),
        answers=Walked[DeliveryRecord],
    ),
    get(
        "/notifications/deliveries/<delivery>",
        READ,
        notifications.get_delivery,
        answers=One[DeliveryRecord],
        fails=(404,),
    ),
    post(
        "/notifications/deliveries/<delivery>/redeliver",
        WRITE,
        notifications.redeliver,
        Nothing,
        "delivery.redeliver",
        answers=One[DeliveryRecord],
        status=201,
        fails=(404, 409),
    ),
)

LIVE_NOTIFICATION_ROUTES: Final[tuple[LiveRoute, ...]] = (
    LiveRoute(
        method="POST",
        path="/notifications/destinations/<destination>/test",
        access=WRITE,
        handler=notifications.test_destination,
        shape=SampleInput,
        answers=One[DeliveryRecord],
        action="destination.test",
        fails=(404,),
    ),
)
