"""The end user as a vendor sees it: a hash, stable for abuse reports, that says nothing about the person."""

import hashlib

from gwd.core.request import Sender


def user_for(sender: Sender) -> str | None:
    if sender.user_id is None:
        return None
    return hashlib.sha256(b"gwd user " + sender.user_id.encode("utf-8", "replace")).hexdigest()[:32]
