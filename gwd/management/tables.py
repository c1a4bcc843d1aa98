"""The table of invitations, for management and lists; the schema itself is in the store's migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class InvitationTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    email = peewee.TextField()
    role = peewee.TextField()
    workspace_ids = JsonField()
    is_lead = peewee.BooleanField()
    token_digest = peewee.BlobField()
    invited_by = peewee.TextField(null=True)
    created_at = peewee.IntegerField()
    expires_at = peewee.IntegerField()
    accepted_at = peewee.IntegerField(null=True)
    revoked_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "invitation"
