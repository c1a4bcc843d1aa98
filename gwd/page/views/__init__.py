"""The views: for each page a function of an `Ask` that says which template is shown with what; what its forms do."""

from types import ModuleType
from typing import Final

from gwd.page.views import (
    activity,
    budgets,
    keys,
    me,
    models,
    money,
    notifications,
    overview,
    statements,
    usage,
)

MODULES: Final[tuple[ModuleType, ...]] = (
    overview,
    usage,
    activity,
    keys,
    budgets,
    models,
    statements,
    money,
    notifications,
    me,
)
"""In the order of the navigation."""
