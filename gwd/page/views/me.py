"""The page of one's own key: what GET /auth/key and GET /key/usage say of it, and nothing else."""

from datetime import date
from typing import Final

from gwd.page import by_day
from gwd.page.answer import Shown
from gwd.page.ask import Ask
from gwd.page.charts import stacked
from gwd.page.table import Act, Page


def me(ask: Ask) -> Shown:
    """Limit, budgets, spend, rate, models and expiry of the key that is signed in."""
    first = date.fromisoformat(f"{ask.month}-01")
    found = ask(
        "/key/usage",
        query={
            "from": f"{first}T00:00:00Z",
            "metrics": "cost,requests",
            "dimensions": "model",
            "granularity": "day",
            "limit": 10_000,
        },
    )["data"]["data"]
    chart = stacked(
        by_day.days_between(first, ask.today), by_day.by_name(found, "model"), rest="models"
    )
    key = ask("/auth/key")["data"]
    values = {"key": key, "spend": chart, "requests": sum(row["requests"] for row in found)}
    return Shown(template="me.html", values=values, title=key["name"])


PAGES: Final = (Page(path="/me", title="Your key", view=me, of_api_key=True, noun="key"),)
ACTS: Final[tuple[Act, ...]] = ()
