"""The table of this room, for management and lists; the schema itself is in the store's migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class KeyTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    workspace_id = peewee.TextField(null=True)
    family_id = peewee.TextField()
    kind = peewee.TextField()
    role = peewee.TextField(null=True)
    user_id = peewee.TextField(null=True)
    creator_user_id = peewee.TextField(null=True)
    external_user = peewee.TextField(null=True)
    name = peewee.TextField()
    label = peewee.TextField()
    hash = peewee.TextField()
    digest = peewee.BlobField()
    disabled = peewee.BooleanField()
    limit_nano = peewee.IntegerField(null=True)
    limit_reset = peewee.TextField(null=True)
    include_byok_in_limit = peewee.BooleanField()
    strict = peewee.BooleanField()
    in_flight_cap = peewee.IntegerField(null=True)
    rate_limit_per_minute = peewee.IntegerField(null=True)
    allowed_models = JsonField(null=True)
    alert_thresholds = JsonField()
    expires_at = peewee.IntegerField(null=True)
    rotated_to = peewee.TextField(null=True)
    rotated_from = peewee.TextField(null=True)
    last_used_at = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()
    updated_at = peewee.IntegerField()
    deleted_at = peewee.IntegerField(null=True)

    class Meta:
        table_name = "api_key"
