"""/organization/invitations, and /invitations/accept by which an invited person becomes a member."""

from gwd.api.management import Answer, Call, OpenCall, deleted, one, walked
from gwd.management import invitations
from gwd.management.invitations import AcceptInvitation, CreateInvitation
from gwd.orgs import members
from gwd.store import Connection


def create(connection: Connection, call: Call) -> Answer:
    """`accept_url` holds the token and is shown here, once."""
    body: CreateInvitation = call.body
    sent = invitations.create(
        connection,
        body,
        change=call.change,
        pepper=call.node.issuing.pepper,
        app_url=call.node.app_url,
    )
    shown = invitations.record(sent.invitation, now_us=call.now_us)
    return Answer(
        status=201,
        body={"data": shown, "accept_url": sent.accept_url},
        replay={"data": shown, "accept_url": None},
    )


def list_(connection: Connection, call: Call) -> Answer:
    asked = call.walk()
    found, total = invitations.list_invitations(
        connection,
        call.organization_id,
        limit=asked.size,
        offset=asked.offset,
        after=asked.after,
        before=asked.before,
    )
    return walked(
        asked,
        found,
        total,
        lambda one: invitations.record(one, now_us=call.now_us),
        lambda one: one.id,
    )


def get(connection: Connection, call: Call) -> Answer:
    found = invitations.get(connection, call.organization_id, call.path["invitation"])
    return one(invitations.record(found, now_us=call.now_us))


def revoke(connection: Connection, call: Call) -> Answer:
    """The invitation stays on record, as revoked."""
    ended = invitations.revoke(connection, call.path["invitation"], change=call.change)
    return deleted(None, ended.id)


def accept(connection: Connection, call: OpenCall) -> Answer:
    """Join by token. The new member's management key is shown here, once.

    The token works once, so repeating this request is a 404: there is nothing to show again.
    """
    body: AcceptInvitation = call.body
    joined = invitations.accept(
        connection, body, issuing=call.node.issuing, now_us=call.now_us, origin=call.origin
    )
    return Answer(
        status=201,
        body={
            "data": {
                **members.record(joined.member),
                "organization_id": joined.member.organization_id,
                "workspace_ids": joined.invitation.workspace_ids,
                "is_lead": joined.invitation.is_lead,
            },
            "management_key": joined.issued.plaintext,
        },
    )
