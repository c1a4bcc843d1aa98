"""The views: for each page a function of an `Ask` that says which template is shown with what; what its forms do."""

from types import ModuleType
from typing import Final

from gwd.page.views import activity, keys, me, overview, usage

MODULES: Final[tuple[ModuleType, ...]] = (overview, usage, activity, keys, me)
"""In the order of the navigation."""
