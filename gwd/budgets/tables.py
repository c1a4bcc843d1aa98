"""peewee's view of the budgets."""

from peewee import BigIntegerField, BooleanField, TextField

from gwd.store.fields import JsonField, Table


class BudgetRow(Table):
    id = TextField(primary_key=True)
    organization_id = TextField()
    scope = TextField()
    scope_id = TextField()
    spend_id = TextField()
    interval = TextField()
    kind = TextField()
    limit_nano = BigIntegerField()
    include_byok = BooleanField()
    alert_thresholds = JsonField()
    created_at = BigIntegerField()
    updated_at = BigIntegerField()
    shadow = BooleanField()
    raised_nano = BigIntegerField(null=True)
    raised_until = BigIntegerField(null=True)
    raised_by = TextField(null=True)

    class Meta:
        table_name = "budget"
