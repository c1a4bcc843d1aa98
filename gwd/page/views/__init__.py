"""The views: for each page a function of an `Ask` that says which template is shown with what; what its forms do."""

from types import ModuleType
from typing import Final

from gwd.page.views import (
    activity,
    audit,
    budgets,
    keys,
    me,
    models,
    money,
    node,
    notifications,
    overview,
    people,
    privacy,
    provider_keys,
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
    provider_keys,
    privacy,
    people,
    audit,
    node,
    me,
)
"""In the order of the navigation."""
