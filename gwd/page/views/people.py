"""People: who is in and as what, their management keys, open invitations, and browsers that are signed in."""

from typing import Any, Final

from gwd.page.answer import Done, Shown
from gwd.page.ask import Ask, Doing
from gwd.page.request import Field
from gwd.page.table import Act, Page
from gwd.page.views.keys import people as names_of
from gwd.page.views.keys import workspaces
from gwd.page.words import DID

_PATH: Final = "/settings/people"
_ONE: Final = f"{_PATH}/<user>"
_ROLES: Final = ("member", "billing", "admin", "owner")
_EVERY: Final = {"include_disabled": "true", "include_expired": "true"}
DID["revoked"] = "The invitation is revoked: its link does not work any more."
DID["role_set"] = "The role is set; it holds from the next request on."
DID["left"] = "The member is removed; their management keys ended."
DID["ended_session"] = "The browser is signed out."
DID["ended_sessions"] = "Their browsers are signed out."


def people(ask: Ask) -> Shown:
    """Members, open invitations, management keys and browsers."""
    invitations = ask("/organization/invitations", query={"limit": 100})["data"]
    values = {
        "members": ask.all("/organization/members"),
        "invitations": [each for each in invitations if each["status"] == "pending"],
        "management_keys": _management_keys(ask),
        "sessions": ask("/sessions")["data"],
        "names": names_of(ask),
        "workspaces": workspaces(ask),
        "me": ask.visit.caller.user_id,
        "can_invite": ask.may("invitations.write"),
    }
    return Shown(template="people.html", values=values)


def person(ask: Ask) -> Shown:
    """One member with keys and browsers."""
    member = ask("/organization/members/<user>", user=ask.path["user"])["data"]
    user_id = member["id"]
    values = {
        "member": member,
        "keys": [each for each in ask.all("/keys", query=_EVERY) if each["user_id"] == user_id],
        "sessions": [each for each in ask("/sessions")["data"] if each["user_id"] == user_id],
        "roles": _ROLES,
        "can_change": ask.may("members.write"),
        "can_make": ask.may("keys.write"),
        "is_me": user_id == ask.visit.caller.user_id,
    }
    title = names_of(ask).get(user_id)
    return Shown(template="person.html", values=values | {"name": title}, title=title)


def invite(ask: Ask) -> Shown:
    """The form of an invitation."""
    values = {"roles": _ROLES[:-1] if ask.visit.caller.role == "admin" else _ROLES}
    return Shown(template="invite.html", values=values | {"workspaces": workspaces(ask)})


def _management_keys(ask: Ask) -> list[Any]:
    return [each for each in ask.all("/keys", query=_EVERY) if each["type"] == "management"]


async def send_invitation(doing: Doing) -> Shown:
    """The link is shown once; it is sent by whoever invites."""
    form = doing.form
    body = {
        "email": form.text("email"),
        "role": form.text("role") or "member",
        "workspace_ids": form.many("workspace_ids"),
        "is_lead": form.flag("is_lead"),
    }
    made = await doing.send("POST", "/organization/invitations", body, once=form.or_none("once"))
    values = {"url": made["accept_url"], "invitation": made["data"]}
    return Shown(template="invited.html", values=values, title="Invitation")


async def revoke(doing: Doing) -> Done:
    await doing.send(
        "DELETE",
        "/organization/invitations/<invitation>",
        invitation=doing.path["invitation"],
    )
    return Done(path=_PATH, did="revoked")


async def set_role(doing: Doing) -> Done:
    user = doing.path["user"]
    body = {"role": doing.form.text("role")}
    await doing.send("PATCH", "/organization/members/<user>", body, user=user)
    return Done(path=f"{_PATH}/{user}", did="role_set")


async def remove(doing: Doing) -> Done:
    await doing.send("DELETE", "/organization/members/<user>", user=doing.path["user"])
    return Done(path=_PATH, did="left")


async def make_key(doing: Doing) -> Shown:
    """A management key of the member, of their role at most."""
    form, user = doing.form, doing.path["user"]
    member = (await doing.send("GET", "/organization/members/<user>", user=user))["data"]
    body = {
        "name": form.text("name"),
        "type": "management",
        "role": member["role"],
        "user_id": member["id"],
    }
    made = await doing.send("POST", "/keys", body, once=form.or_none("once"))
    values = {"secret": made["key"], "key": made["data"], "old": None}
    return Shown(template="key-made.html", values=values, title=made["data"]["name"])


async def end_session(doing: Doing) -> Done:
    await doing.send("DELETE", "/sessions/<session>", session=doing.path["session"])
    return Done(path=_PATH, did="ended_session")


async def end_sessions(doing: Doing) -> Done:
    """Sign a member out everywhere."""
    user = doing.path["user"]
    member = (await doing.send("GET", "/organization/members/<user>", user=user))["data"]
    for each in (await doing.send("GET", "/sessions"))["data"]:
        if each["user_id"] == member["id"]:
            await doing.send("DELETE", "/sessions/<session>", session=each["id"])
    return Done(path=_PATH, did="ended_sessions")


PAGES: Final = (
    Page(
        path=_PATH,
        title="People",
        view=people,
        right="members.read",
        nav="People",
        icon="people",
        is_setting=True,
        noun="member",
    ),
    Page(
        path=f"{_PATH}/invite",
        title="Invite",
        view=invite,
        right="invitations.write",
        under=_PATH,
        noun="workspace",
    ),
    Page(path=_ONE, title="Member", view=person, right="members.read", under=_PATH, noun="member"),
)
ACTS: Final = (
    Act(
        path=f"{_PATH}/invite",
        do=send_invitation,
        right="invitations.write",
        fields=(
            *(Field("email", 1_000), Field("role", 20), Field("is_lead", 1)),
            Field("workspace_ids", 100, is_many=True),
        ),
        form=f"{_PATH}/invite",
    ),
    Act(
        path=f"{_PATH}/invitations/<invitation>/revoke",
        do=revoke,
        right="invitations.write",
        form=_PATH,
    ),
    Act(
        path=f"{_PATH}/sessions/<session>/end",
        do=end_session,
        right="organization.read",
        form=_PATH,
    ),
    Act(path=f"{_ONE}/sign-out", do=end_sessions, right="organization.read", form=_ONE),
    Act(
        path=f"{_ONE}/role",
        do=set_role,
        right="members.write",
        fields=(Field("role", 20),),
        form=_ONE,
        asks_again=True,
    ),
    Act(path=f"{_ONE}/remove", do=remove, right="members.write", form=_ONE, asks_again=True),
    Act(
        path=f"{_ONE}/key",
        do=make_key,
        right="keys.write",
        fields=(Field("name", 1_000),),
        form=_ONE,
        asks_again=True,
    ),
)
