"""How the answer of a generation begins."""

import msgspec

from gwd.core.errors import GatewayError
from gwd.core.target import Target


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer begins: an error, a whole body, or (both None) a stream in the frame queue.

    `served` is the target that serves or is being tried; None when routing chose none.
    """

    served: Target | None
    body: bytes | None = None
    error: GatewayError | None = None
