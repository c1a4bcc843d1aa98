"""Analytics: what generations came to, added up by whatever they have in common.

A question names metrics and dimensions by words; SQL is put together from the dictionaries of this folder alone, and
what a request brings reaches it as values only. Whole days are read from the day sums where they know the answer, the
rest from the records; both give the same.
"""

from gwd.activity.analytics.answer import Answered, answer
from gwd.activity.analytics.dimensions import DIMENSIONS, Dimension
from gwd.activity.analytics.metrics import METRICS, Metric
from gwd.activity.analytics.question import (
    GRANULARITIES,
    OPERATORS,
    AnalyticsQuery,
    Ends,
    Question,
    ends_of,
    question,
)
from gwd.activity.analytics.scope import Scope

__all__ = [
    "DIMENSIONS",
    "GRANULARITIES",
    "METRICS",
    "OPERATORS",
    "AnalyticsQuery",
    "Answered",
    "Dimension",
    "Ends",
    "Metric",
    "Question",
    "Scope",
    "answer",
    "ends_of",
    "question",
]
