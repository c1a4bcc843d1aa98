"""What the gateway has to know of a vendor format beside how it is built and decoded; its adapter says it."""

from typing import Literal

import msgspec

from gwd.core.request import Family

MediaKind = Literal["image", "file"]
ModelList = Literal["openai", "anthropic", "gemini"]
Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "none"]


class VendorFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one format; the defaults are those of one about which nothing is peculiar.

    name              what providers of the catalog call it
    auth              how its vendors take a credential, where a provider of the catalog does not say
    model_list        whose way of listing models its vendors follow
    family            the dialects' family that is the same format: fields we do not know go through; None: none is
    no_field_for      words of `supported_parameters` for which it has no field, whatever the catalog says
    least_output      the smallest cap on output that it takes; a client's lower one is raised to it
    fetches           what its vendors fetch by its address, where an endpoint's flags do not say
    tiers_of          other families whose `service_tier` has a place in it
    chosen_by_vendor  priced extras that the vendor's own settings may choose where a request says nothing of them
    assumed_searches  how many searches a server has run that was told to search and counts none
    has_free_tools    tools of the vendor's making that cost nothing beside their tokens are sent on without a price
    """

    name: str
    auth: Auth = "bearer"
    model_list: ModelList = "openai"
    family: Family | None = None
    no_field_for: frozenset[str] = frozenset()
    least_output: int = 0
    fetches: frozenset[MediaKind] = frozenset()
    tiers_of: frozenset[Family] = frozenset()
    chosen_by_vendor: tuple[str, ...] = ()
    assumed_searches: int = 0
    has_free_tools: bool = False
