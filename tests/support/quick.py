"""What a process that tests does once instead of for every node: libraries' work that gives the same each time."""

import ast
import functools
import inspect
import os
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import sanic.mixins.routes
import sanic_routing.route
import sanic_routing.router
import sanic_routing.utils

NOBODY = Path(__file__).with_name("nobody.pem")
TRUST = {"SSL_CERT_FILE": str(NOBODY), "SSL_CERT_DIR": str(NOBODY.parent / "none")}
"""Nothing here calls real servers, and the machine's certificate authorities take longer to read than most tests do."""


def be_quick() -> None:
    """For this process and for every one that inherits its environment."""
    os.environ.update(TRUST)
    # Every application has the same routes. What the router writes for them is taken apart and compiled once.
    router: Any = sanic_routing.router
    router.ast = SimpleNamespace(
        parse=functools.cache(ast.parse),
        unparse=functools.cache(ast.unparse),
        fix_missing_locations=functools.cache(ast.fix_missing_locations),
    )
    router.compile = functools.cache(compile)
    parts = functools.cache(sanic_routing.utils.path_to_parts)
    route: Any = sanic_routing.route
    router.path_to_parts = route.path_to_parts = parts
    routes: Any = sanic.mixins.routes
    routes.signature = _signature


_signatures: dict[CodeType, inspect.Signature] = {}


def _signature(handler: Any) -> inspect.Signature:
    """Handlers of one factory have one signature."""
    code = handler.__code__
    if code not in _signatures:
        _signatures[code] = inspect.signature(handler)
    return _signatures[code]
