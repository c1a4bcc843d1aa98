"""The tables of this room, for management and lists; the schema itself is in the store's migrations."""

import peewee

from gwd.store.fields import JsonField, Table


class AlertTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    category = peewee.TextField()
    type = peewee.TextField()
    severity = peewee.TextField()
    title = peewee.TextField()
    message = peewee.TextField()
    url = peewee.TextField()
    data = JsonField()
    created_at = peewee.IntegerField()

    class Meta:
        table_name = "alert"


class AlertSettingTable(Table):
    organization_id = peewee.TextField()
    category = peewee.TextField()
    enabled = peewee.BooleanField()
    thresholds = JsonField(null=True)
    channels = JsonField(null=True)
    email_roles = JsonField(null=True)
    muted_until = peewee.IntegerField(null=True)

    class Meta:
        table_name = "alert_setting"
        primary_key = peewee.CompositeKey("organization_id", "category")


class DestinationTable(Table):
    id = peewee.TextField(primary_key=True)
    organization_id = peewee.TextField()
    type = peewee.TextField()
    name = peewee.TextField()
    address = peewee.TextField()
    sealed_address = peewee.TextField(null=True)
    sealed_secret = peewee.TextField(null=True)
    secret_hint = peewee.TextField(null=True)
    events = JsonField()
    enabled = peewee.BooleanField()
    consecutive_failures = peewee.IntegerField()
    disabled_at = peewee.IntegerField(null=True)
    disabled_reason = peewee.TextField(null=True)
    last_delivery_at = peewee.IntegerField(null=True)
    last_delivery_status = peewee.TextField(null=True)
    last_delivery_error = peewee.TextField(null=True)
    min_severity = peewee.TextField()
    chat_format = peewee.TextField(null=True)
    sealed_old_secret = peewee.TextField(null=True)
    old_secret_until = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()
    updated_at = peewee.IntegerField()

    class Meta:
        table_name = "destination"


class DeliveryTable(Table):
    id = peewee.TextField(primary_key=True)
    event_id = peewee.TextField()
    organization_id = peewee.TextField()
    destination_id = peewee.TextField(null=True)
    recipient = peewee.TextField(null=True)
    addressee = peewee.TextField()
    type = peewee.TextField()
    attempt = peewee.IntegerField()
    status = peewee.TextField()
    response_status = peewee.IntegerField(null=True)
    error = peewee.TextField(null=True)
    latency_ms = peewee.IntegerField(null=True)
    next_attempt_at = peewee.IntegerField(null=True)
    finished_at = peewee.IntegerField(null=True)
    created_at = peewee.IntegerField()

    class Meta:
        table_name = "delivery"
