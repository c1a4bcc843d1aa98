"""alerts: what happened that people want to hear of, and to whom each alert goes.

Owns: the tables `alert`, `alert_mark`, `alert_setting`, `destination`, `delivery`.
Does not own: when something is worth an alert (the rooms and use cases that raise it), how a delivery travels.
Invariants: an alert and its deliveries are written in the transaction of their cause; a mark lets each cause speak
once; an alert never changes afterwards.
Speaks to: orgs for addresses and settings.
"""

from gwd.alerts.marks import Mark, clear, is_told, mark_once
from gwd.alerts.service import NewAlert, raise_

__all__ = ["Mark", "NewAlert", "clear", "is_told", "mark_once", "raise_"]
