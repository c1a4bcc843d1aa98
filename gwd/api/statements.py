"""/statements: what a month came to."""

from gwd.api.management import Answer, Call, one
from gwd.api.money import named_organization
from gwd.core.errors import Forbidden
from gwd.management import statements
from gwd.orgs import rights
from gwd.store import Connection


def get(connection: Connection, call: Call) -> Answer:
    """The statement of a month: balances, movements, charges by workspace, key and model.

    All of it is exact and adds up, or the answer is the error `statement_mismatch`. A month that is running is shown
    as far as it has come; one that has not begun is refused, and one before the organization was made is not there.
    """
    if rights.require(call.caller, "ledger.read") != "all":
        raise Forbidden(
            "A statement is of the whole organization, and this management key is bound to one workspace;"
            " use a key that is not."
        )
    return one(
        statements.statement(
            connection,
            named_organization(call, call.query.get("organization_id")),
            call.path["month"],
            now_us=call.now_us,
            due_us=call.due_us,
        )
    )
