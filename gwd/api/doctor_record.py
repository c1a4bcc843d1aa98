"""What the doctor answers: its findings, each with what helps."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

State = Literal["ok", "warning", "failed"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One finding."""

    name: Annotated[str, Meta(description="What was looked at.")]
    state: Annotated[State, Meta(description="Whether it is in order.")]
    message: Annotated[str, Meta(description="What was found.")]
    do: Annotated[str, Meta(description="What helps; empty when it is in order.")] = ""


class DoctorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was looked for."""

    ok: Annotated[bool, Meta(description="Whether nothing has failed; warnings may be there.")]
    base_url: Annotated[str, Meta(description="The address that clients use.")]
    checks: Annotated[list[Check], Meta(description="All checks, in the order they were made.")]
