"""topup: credit that is bought by itself when it runs low, through the operator's payment hook.

Owns: each organization's settings for it and the attempts: when one is due, claimed, tried again, closed.
Does not own: the call itself (jobs, through outbound), the hook's secret in the clear (management seals and opens it),
the alert about a failure (whoever runs the job raises it).
Invariants: one attempt at a time per organization; an attempt's id is the purchase's reference, so it adds credit once
whatever is repeated; what succeeded or is pending in a month never exceeds the monthly cap, and one that it stops is
told once, as the last attempt and as an alert; after a failed attempt nothing is tried for an hour unless the settings
change; an organization that was deleted is never asked for money.
Queries: plain SQL: settlement asks, and an attempt is claimed in one statement.
Speaks to: ledger, orgs, store, core.
"""

from gwd.topup.attempts import (
    CappedTopUp,
    ClaimedAttempt,
    FailedAttempt,
    begin,
    claim_due,
    consider,
    due,
    fail,
    forget_the_future,
    note_capped,
    succeed,
)
from gwd.topup.settings import PatchTopUp, TopUp, TopUpRecord, get, patch, record

__all__ = [
    "CappedTopUp",
    "ClaimedAttempt",
    "FailedAttempt",
    "PatchTopUp",
    "TopUp",
    "TopUpRecord",
    "begin",
    "claim_due",
    "consider",
    "due",
    "fail",
    "forget_the_future",
    "get",
    "note_capped",
    "patch",
    "record",
    "succeed",
]
