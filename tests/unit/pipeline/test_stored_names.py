"""What a hold keeps for recovery is read by later versions: its names in the database do not follow the code's."""

import msgspec

from gwd.core.request import Sender
from gwd.pipeline.admit.admission import Context
from gwd.pipeline.admit.identity import GenerationIdentity

IDENTITY = GenerationIdentity(
    generation_id="gen-1",
    organization_id="org_acme",
    workspace_id=None,
    key_id="key_1",
    family_id="key_1",
    dialect="messages",
    requested_model="demo/chat",
    stream=True,
    sender=Sender(),
    dropped_tools=(),
    request_id="req_1",
    user_agent=None,
    created_us=1,
)


def test_a_hold_of_an_earlier_version_is_read() -> None:
    stored = msgspec.json.encode({"ticket": IDENTITY})
    assert msgspec.json.encode(Context(identity=IDENTITY)) == stored
    assert msgspec.json.decode(stored, type=Context).identity == IDENTITY
