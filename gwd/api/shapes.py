"""The envelopes of management answers: one record, a list with its count, a page of a growing list, a removal.

A route's `answers` names one of these with its record, or a struct of its own; that type is what OpenAPI says.
"""

from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from gwd.core.fields import Id

T = TypeVar("T")

TotalCount = Annotated[int, Meta(ge=0, description="How many there are in all, on every page.")]


class One(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A single record under `data`."""

    data: T


Notes = Annotated[
    list[str] | UnsetType,
    Meta(
        description="What was taken and may be meant otherwise, a sentence each; only where there is something to say."
    ),
]


class Noted(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A single record under `data`, with what is to be said of the change."""

    data: T
    notes: Notes = UNSET


class Listed(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list, and the count of all."""

    data: list[T]
    total_count: TotalCount


class Walked(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A page of a list that grows at its head, with the places from which to go on."""

    data: list[T]
    total_count: Annotated[
        int | None,
        Meta(
            description="How many there are in all; null in a walk, and where they are too many to be counted."
        ),
    ]
    next: Annotated[
        str | None,
        Meta(
            description="Give it as `after` for older records; null at the end of the list. A page that took a long"
            " look may hold few records, or none, and lead on."
        ),
    ]
    previous: Annotated[
        str | None, Meta(description="Give it as `before` for what was added since this page.")
    ]


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed."""

    deleted: Annotated[
        Literal[True], Meta(description="It is gone, or was not there to begin with.")
    ] = True
    id: Annotated[
        Id | None, Meta(description="What was removed; null where there was nothing to remove.")
    ]
