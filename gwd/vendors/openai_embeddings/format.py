"""What other rooms have to know of the embeddings format."""

from typing import Final

from gwd.core.vendor_format import VendorFormat

FORMAT: Final = VendorFormat(name="openai_embeddings", family="openai_embeddings")
