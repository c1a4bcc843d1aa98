"""explain: what would become of a request, told without sending it: its route, its refusals, its cost from and to.

Owns: explanations and estimates, and how they look to clients.
Does not own: the plan and the checks: it asks the planner and the checks of the line itself (plan, admit, dispatch).
Invariants: nothing is held, sent or written; an explanation is what the next request of that kind would meet.
Speaks to: inference for what the line needs, plan, admit, dispatch, budgets, pricing, core.
"""
