"""Certificates of the tests' own."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


def authority(folder, name):
    """A server's context with a certificate for this name, and a client's that trusts it."""
    made, _, file = certificate(folder, name=name)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(file)
    client = ssl.create_default_context(
        cadata=made.public_bytes(serialization.Encoding.PEM).decode()
    )
    return serving, client


def certificate(folder, *, name="127.0.0.1", signed_by=None, starts=-DAY, ends=DAY):
    """A certificate and its key as files; without a signer it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing = (signed_by[0].subject, signed_by[1]) if signed_by else (subject, key)
    now = datetime.now(UTC)
    try:
        alternative = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=signed_by is None, path_length=None), critical=True)
        .sign(signing, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(private + made.public_bytes(pem))
    return made, key, file
