"""The end user as a vendor sees it: a hash, stable for abuse reports, that says nothing about the person."""

import hashlib

from gwd.core.request import Tags


def user_for(tags: Tags) -> str | None:
    if tags.user_id is None:
        return None
    return hashlib.sha256(b"gwd user " + tags.user_id.encode("utf-8", "replace")).hexdigest()[:32]
