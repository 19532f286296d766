"""A company's certificate authority for tests. Its certificates have the usual form, or an older one."""

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY: Final = datetime.timedelta(days=1)
PEM: Final = serialization.Encoding.PEM


def use_small_store(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let one authority stand for those of the system. All of them are read for 25 ms with each context."""
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(Authority(folder, "Public CA").file))


class Authority:
    """An authority whose certificate is in `file`. Without `is_modern` its certificates lack the extensions
    that RFC 5280 asks for, as those of many companies' authorities do.
    """

    def __init__(self, folder: Path, name: str = "Example Corp CA", *, is_modern: bool = True) -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._is_modern = is_modern
        builder = _begin(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        if is_modern:
            builder = builder.add_extension(_KEY_USAGE, critical=True).add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(PEM))

    def issue(self, host: str) -> Path:
        """A file with the key and the certificate of a host name or an address."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
        names = x509.SubjectAlternativeName([_name(host)])
        builder = _begin(subject, self._name, key).add_extension(names, critical=False)
        if self._is_modern:
            identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(identifier, critical=False)
        path = self._folder / f"{host}.pem"
        path.write_bytes(
            key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + builder.sign(self._key, hashes.SHA256()).public_bytes(PEM)
        )
        return path

    def serve(self, host: str) -> ssl.SSLContext:
        """What a server of this host needs."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.issue(host))
        return context


_KEY_USAGE: Final = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _begin(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    today = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - DAY)
        .not_valid_after(today + DAY)
    )
