"""The table of this room, for lists; the schema itself is in the store's migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class AuditTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField(null=True)
    actor_key_id = peewee.TextField(null=True)
    actor_user_id = peewee.TextField(null=True)
    actor_role = peewee.TextField(null=True)
    action = peewee.TextField()
    subject_type = peewee.TextField()
    subject_id = peewee.TextField(null=True)
    details = JsonField()
    address = peewee.TextField(null=True)
    request_id = peewee.TextField(null=True)
    created_at = peewee.IntegerField()

    class Meta:
        table_name = "audit"
