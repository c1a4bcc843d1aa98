"""The routes of the organization's own vendor keys."""

from typing import Final

from gwd.api import byok
from gwd.api.access import manage
from gwd.api.provider_probe import ProbeRecord
from gwd.api.route import LiveRoute, Nothing, Route, delete, get, list_, patch, post
from gwd.api.shapes import Deleted, Listed, One
from gwd.credentials.own import CreateVendorKey, PatchVendorKey
from gwd.credentials.own_record import VendorKeyRecord

BYOK_ROUTES: Final[tuple[Route, ...]] = (
    list_(
        "/byok",
        manage("byok.read"),
        byok.list_,
        *byok.FILTERS,
        answers=Listed[VendorKeyRecord],
        fails=(404,),
    ),
    post(
        "/byok",
        manage("byok.write"),
        byok.create,
        CreateVendorKey,
        "byok.create",
        answers=One[VendorKeyRecord],
        status=201,
        fails=(409,),
    ),
    get("/byok/<byok>", manage("byok.read"), byok.get, answers=One[VendorKeyRecord]),
    patch(
        "/byok/<byok>",
        manage("byok.write"),
        byok.patch,
        PatchVendorKey,
        "byok.patch",
        answers=One[VendorKeyRecord],
        fails=(409,),
    ),
    delete("/byok/<byok>", manage("byok.write"), byok.delete, "byok.delete", answers=Deleted),
)

BYOK_TEST: Final = LiveRoute(
    method="POST",
    path="/byok/<byok>/test",
    access=manage("byok.write"),
    handler=byok.test,
    answers=One[ProbeRecord],
    shape=Nothing,
    action="byok.test",
    fails=(409, 502),
)
