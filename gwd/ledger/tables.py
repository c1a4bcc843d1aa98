"""peewee's view of the entries, for lists."""

from peewee import BigIntegerField, BlobField, CompositeKey, TextField

from gwd.store.fields import Table


class EntryRow(Table):
    organization_id = TextField()
    seq = BigIntegerField()
    id = TextField()
    type = TextField()
    from_account = TextField()
    to_account = TextField()
    amount_nano = BigIntegerField()
    bucket = TextField(null=True)
    lot_id = TextField(null=True)
    generation_id = TextField(null=True)
    key_id = TextField(null=True)
    workspace_id = TextField(null=True)
    reference = TextField(null=True)
    note = TextField(null=True)
    actor = TextField(null=True)
    balance_after_nano = BigIntegerField()
    created_at = BigIntegerField()
    hash = BlobField()

    class Meta:
        table_name = "entry"
        primary_key = CompositeKey("organization_id", "seq")
