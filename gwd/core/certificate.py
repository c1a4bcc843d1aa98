"""A certificate as far as people are told of it: when it ends, and which names it is for."""

from pathlib import Path

import msgspec

from gwd.core.clock import US_PER_S


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """When a certificate ends, and for which names it is."""

    ends_us: int
    names: tuple[str, ...]


def read_certificate(path: Path) -> Certificate:
    """The first certificate of a PEM file, which is the listener's own."""
    from cryptography import x509  # a part of the library that only a look at it needs

    names: tuple[str, ...] = ()
    read = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        addresses = found.value.get_values_for_type(x509.IPAddress)
        names = (*found.value.get_values_for_type(x509.DNSName), *map(str, addresses))
    except x509.ExtensionNotFound:
        pass
    return Certificate(
        ends_us=int(read.not_valid_after_utc.timestamp()) * US_PER_S,
        names=names,
    )
