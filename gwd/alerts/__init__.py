"""alerts: events that people are notified of, and to whom each alert goes.

Owns: the tables `alert`, `alert_mark`, `alert_setting`, `destination`, `delivery`; which thresholds a charge or a
change of a limit crossed (`threshold_alerts`), which keys their vendors turn away (`credential_alerts`), what happens
in the catalog and to the node (`catalog_alerts`, `node_alerts`); what is due to whom, how often it is tried (`queue`);
how long all of it stays on record (`history`).
Does not own: where the thresholds stand (keys, spend, ledger), other causes of alerts (the use cases that raise them),
how a delivery travels (channels), when it is tried (jobs).
Invariants: an alert and its deliveries are written in the transaction of their cause; a mark makes each cause raise
its alert once; an alert never changes afterwards.
Queries: peewee; what settlement asks and writes, the queue, and what is forgotten, in plain SQL.
Speaks to: orgs for addresses and settings; keys, budgets, spend, ledger and topup for what crossed a threshold; catalog
and activity for what is coming and whom it meets; credentials for what vendors said of them; outbound.
"""

from gwd.alerts.marks import Mark, clear, is_raised, mark_once
from gwd.alerts.service import NewAlert, raise_

__all__ = ["Mark", "NewAlert", "clear", "is_raised", "mark_once", "raise_"]
