"""The views: for each page a function of an `Ask` that says which template is shown with what; what its forms do."""

from types import ModuleType
from typing import Final

from gwd.page.views import keys, me, overview

MODULES: Final[tuple[ModuleType, ...]] = (overview, keys, me)
"""In the order of the navigation."""
