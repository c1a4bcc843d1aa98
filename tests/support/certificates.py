"""Certificates for servers on the loopback: good ones, and each kind that is not accepted."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `file` is what a client has to trust."""

    key: ec.EllipticCurvePrivateKey
    name: x509.Name
    file: Path


def authority(directory: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority of its own")])
    path = directory / "authority.pem"
    path.write_bytes(_signed(name, key, name, key, host=None, days=1))
    return Authority(key, name, path)


def server_tls(
    directory: Path, *, host: str = "localhost", days: int = 1, by: Authority | None = None
) -> ssl.SSLContext:
    """A server's context with a certificate for `host`, self-signed unless `by` signs it, ended where `days` < 0."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    signer = (name, key) if by is None else (by.name, by.key)
    path = directory / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + _signed(name, key, *signer, host=host, days=days)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def _signed(
    name: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: x509.Name,
    signer_key: ec.EllipticCurvePrivateKey,
    *,
    host: str | None,
    days: int,
) -> bytes:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
    )
    if host is not None:
        names = x509.SubjectAlternativeName([x509.DNSName(host)])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
