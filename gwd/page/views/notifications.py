"""Notifications: where alerts go, what became of each delivery, and who is told of what."""

from typing import Any, Final

from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.request import Field, Form
from gwd.page.table import Act, Page
from gwd.page.words import DID

_PATH: Final = "/settings/notifications"
_A_PAGE: Final = 50
_KINDS: Final = ("webhook", "chat", "email")
_SEVERITIES: Final = ("info", "warning", "critical")
_DESTINATION: Final = (
    *(Field("type", 20), Field("name", 1_000), Field("url", 4_000), Field("address", 1_000)),
    *(Field("min_severity", 20), Field("events", 100, is_many=True)),
)
DID["told"] = "It is enabled again; what waited is sent."
DID["silent"] = "It is disabled: it is told nothing."
DID["tested"] = "A test was sent; the newest delivery says how it went."
DID["sent_again"] = "It is sent again."


def notifications(ask: Ask) -> Shown:
    """Destinations, those that were disabled first, and the newest deliveries."""
    found = ask.all("/notifications/destinations")
    deliveries = ask(
        "/notifications/deliveries", query={"limit": _A_PAGE, "after": ask.query.or_none("after")}
    )
    values = {
        "destinations": sorted(found, key=lambda each: (each["enabled"], each["name"])),
        "deliveries": _titled(ask, deliveries["data"]),
        "next": deliveries["next"],
        "names": {each["id"]: each["name"] for each in found},
        "settings": ask("/notifications/alerts")["data"],
        "can": ask.may("notifications.write"),
    }
    return Shown(template="notifications.html", values=values)


def destination(ask: Ask) -> Shown:
    """One destination with its deliveries."""
    name = ask.path["destination"]
    found = ask("/notifications/destinations/<destination>", destination=name)["data"]
    deliveries = ask(
        "/notifications/destinations/<destination>/deliveries",
        query={"limit": _A_PAGE, "after": ask.query.or_none("after")},
        destination=name,
    )
    values = {
        "destination": found,
        "deliveries": _titled(ask, deliveries["data"]),
        "next": deliveries["next"],
        "names": {found["id"]: found["name"]},
        "can": ask.may("notifications.write"),
    }
    return Shown(template="destination.html", values=values, title=found["name"])


def new(ask: Ask) -> Shown:
    """The form for a new destination."""
    categories = [each["category"] for each in ask("/notifications/alerts")["data"]]
    values = {"kinds": _KINDS, "severities": _SEVERITIES, "categories": categories}
    return Shown(template="destination-new.html", values=values)


def _titled(ask: Ask, deliveries: list[Any]) -> list[Any]:
    """Deliveries with the title of their alert."""
    titles: dict[str, str] = {}
    for each in deliveries:
        event = each["event_id"]
        if event not in titles:
            titles[event] = ask("/notifications/events/<event>", event=event)["data"]["title"]
    return [each | {"title": titles[each["event_id"]]} for each in deliveries]


async def make(doing: Doing) -> Done | Shown:
    """A webhook's signing secret is shown once."""
    form = doing.form
    made = await doing.send(
        "POST", "/notifications/destinations", _body(form), once=form.or_none("once")
    )
    return _shown_once(made) or Done(path=f"{_PATH}/{made['data']['id']}", did="made")


async def rotate_secret(doing: Doing) -> Done | Shown:
    """The secret before stays good for a day."""
    name = doing.path["destination"]
    made = await doing.send(
        "POST",
        "/notifications/destinations/<destination>/rotate-secret",
        {"overlap_s": 86_400},
        once=doing.form.or_none("once"),
        destination=name,
    )
    return _shown_once(made) or Done(path=f"{_PATH}/{name}", did="saved")


async def enable(doing: Doing) -> Done:
    return await _post(doing, "enable", did="told")


async def disable(doing: Doing) -> Done:
    return await _post(doing, "disable", did="silent")


async def test(doing: Doing) -> Done:
    return await _post(doing, "test", did="tested")


async def delete(doing: Doing) -> Done:
    await doing.send(
        "DELETE",
        "/notifications/destinations/<destination>",
        destination=doing.path["destination"],
    )
    return Done(path=_PATH, did="deleted")


async def send_again(doing: Doing) -> Done:
    made = await doing.send(
        "POST", "/notifications/deliveries/<delivery>/redeliver", delivery=doing.path["delivery"]
    )
    name = made["data"]["destination_id"]
    return Done(path=_PATH if name is None else f"{_PATH}/{name}", did="sent_again")


async def _post(doing: Doing, word: str, *, did: str) -> Done:
    name = doing.path["destination"]
    await doing.send("POST", f"/notifications/destinations/<destination>/{word}", destination=name)
    return Done(path=f"{_PATH}/{name}", did=did)


def _body(form: Form) -> dict[str, Any]:
    kind = form.text("type")
    place = "address" if kind == "email" else "url"
    return {
        "type": kind,
        "name": form.text("name"),
        place: form.or_none(place),
        "min_severity": form.text("min_severity") or "info",
        "events": form.many("events"),
    }


def _shown_once(made: Any) -> Shown | None:
    if "signing_secret" not in made:
        return None
    values = {"secret": made["signing_secret"], "destination": made["data"]}
    return Shown(template="destination-secret.html", values=values, title=made["data"]["name"])


PAGES: Final = (
    Page(
        path=_PATH,
        title="Notifications",
        view=notifications,
        right="notifications.read",
        query=(Field("after", 100),),
        nav="Notifications",
        icon="notifications",
        is_setting=True,
    ),
    Page(
        path=f"{_PATH}/new",
        title="New destination",
        view=new,
        right="notifications.write",
        under=_PATH,
        noun="destination",
    ),
    Page(
        path=f"{_PATH}/<destination>",
        title="Destination",
        view=destination,
        right="notifications.read",
        query=(Field("after", 100),),
        under=_PATH,
        noun="destination",
    ),
)
_ONE: Final = f"{_PATH}/<destination>"
_WRITE: Final = "notifications.write"
ACTS: Final = (
    Act(path=f"{_PATH}/new", do=make, right=_WRITE, fields=_DESTINATION, form=f"{_PATH}/new"),
    Act(path=f"{_PATH}/again/<delivery>", do=send_again, right=_WRITE, form=_PATH),
    Act(path=f"{_ONE}/enable", do=enable, right=_WRITE, form=_ONE),
    Act(path=f"{_ONE}/disable", do=disable, right=_WRITE, form=_ONE),
    Act(path=f"{_ONE}/test", do=test, right=_WRITE, form=_ONE),
    Act(path=f"{_ONE}/rotate-secret", do=rotate_secret, right=_WRITE, form=_ONE),
    Act(path=f"{_ONE}/delete", do=delete, right=_WRITE, form=_ONE),
)
