"""Reads settings from the environment; what is missing or wrong is said, never guessed."""

import os
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from core.files import place

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"", "0", "false", "no", "off"})
SHORTEST_SECRET, SHORTEST_TOKEN = 50, 16  # characters
FEWEST_SHAPES = 30  # in a secret: random ones have more, even of digits alone
WIDEST_PROXIES = {4: 10, 6: 20}  # bits of a public prefix: no provider's proxies take a wider one
UIDS = 65_536  # user numbers of one installation
FIRST_UID_RANGE = 0x1000_0000
UID_RANGES = 24_576


def choose_temporary_folder() -> None:
    """Choose where temporary files lie by its name and rights alone, for all processes alike.

    The library would write something to try each folder, at its first use. Of full disks it would
    then say that there is no such folder, and a call would fail as if by a fault of ours.
    """
    named = next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")  # noqa: S108
    if os.access(named, os.W_OK | os.X_OK):
        tempfile.tempdir = os.path.abspath(named)  # noqa: PTH100  as the library keeps it


@dataclass(frozen=True, slots=True)
class Environment:
    """Typed reading of environment variables; `asked` are the names that were read."""

    values: Mapping[str, str] = field(default_factory=lambda: os.environ)
    asked: set[str] = field(default_factory=set)

    def text(self, name: str, default: str = "") -> str:
        """A string; an empty variable counts as absent."""
        self.asked.add(name)
        return self.values.get(name) or default

    def required(self, name: str, why: str) -> str:
        """A string that must be there."""
        value = self.text(name)
        if not value:
            raise ImproperlyConfigured(f"{name} is not set: {why}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """A yes or no."""
        word = self.text(name, str(default)).lower()
        if word not in TRUE | FALSE:
            raise ImproperlyConfigured(f"{name}={word!r} is neither yes nor no")
        return word in TRUE

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """A whole number, not below `least`."""
        word = self.text(name, str(default))
        try:
            number = int(word)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={word!r} is not a whole number") from None
        if number < least:
            raise ImproperlyConfigured(f"{name}={number} is below {least}")
        return number

    def choice(self, name: str, *choices: str, may_be_empty: bool = True) -> str:
        """One of these, spelled exactly so; the first where the variable is absent."""
        value = self.text(name, choices[0])
        if not may_be_empty:
            value = self.values.get(name, choices[0])
        if value not in choices:
            raise ImproperlyConfigured(f"{name} must be {' or '.join(choices)} (got {value!r})")
        return value

    def items(self, name: str, default: str = "") -> list[str]:
        """A list, separated by commas."""
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def networks(self, name: str) -> list[IPv4Network | IPv6Network]:
        """Addresses or networks (10.0.0.0/8), separated by commas."""
        try:
            return [ip_network(item) for item in self.items(name)]
        except ValueError as problem:
            raise ImproperlyConfigured(f"{name}: {problem}") from None

    def provider(self, name: str, *kinds: str) -> str:
        """An http address after the kind of server there, such as `searxng+https://…`; or ''."""
        value = self.text(name)
        kind, _, address = value.partition("+")
        if value and (kind not in kinds or not re.match(r"https?://[^/]", address)):
            forms = " or ".join(f"{kind}+https://…" for kind in kinds)
            raise ImproperlyConfigured(f"{name} must be {forms}")
        return value

    def site(self, name: str, default: str) -> str:
        """The http address of a site, without a slash at its end: links are made of it."""
        value = self.text(name, default)
        if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
            raise ImproperlyConfigured(f"{name} must be https://host, not {value!r}")
        return value.rstrip("/")

    def engine(self, name: str) -> str:
        """The address of a container engine: `unix:///…`, `tcp://host:port`, `https://…`; or ''."""
        value = self.text(name)
        if value and not re.fullmatch(r"unix:///[^\s]+|(tcp|https)://[^/\s@]+", value):
            raise ImproperlyConfigured(f"{name} must be unix:///…, tcp://host:port or https://host")
        return value

    def network_name(self, name: str, default: str) -> str:
        """A network of the engine: never this machine's own, nor another container's; or ''."""
        value = self.text(name, default)
        if value == "host" or (value and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", value)):
            raise ImproperlyConfigured(f"{name} must name a network of the engine, not {value!r}")
        return value

    def cgroup_name(self, name: str) -> str:
        """A cgroup in which the engine runs something: a slice of systemd, or a path; or ''."""
        value = self.text(name)
        if not re.fullmatch(r"([a-z0-9][a-z0-9_-]*\.slice|(/[a-z0-9][a-z0-9_.-]*)+)?", value):
            form = "name.slice, or a path such as /name"
            raise ImproperlyConfigured(f"{name} must be {form}, not {value!r}")
        return value

    def addresses(self, name: str) -> dict[str, str]:
        """Addresses by name: `acme/production/api=https://api.example/health`, separated by commas.

        A name has the organisation first, as two of them may have a service of one name.
        """
        found = dict(item.partition("=")[::2] for item in self.items(name))
        for service, address in found.items():
            if service.count("/") < 2 or not re.match(r"https?://[^/]", address):
                form = "organisation/environment/service=https://…, …"
                raise ImproperlyConfigured(f"{name} must be {form}")
        return found

    def path(self, name: str, default: Path) -> Path:
        """An absolute path. Raises ImproperlyConfigured for one in a home that there is not."""
        try:
            return Path(self.text(name, str(default))).expanduser().absolute()
        except RuntimeError:  # a user without a name, as containers are often given
            raise ImproperlyConfigured(f"{name}: the user that runs this has no home (~)") from None

    def folders(self, name: str, default: str) -> list[Path]:
        """Absolute paths, separated by commas, without those in a home that there is not."""
        found = []
        for item in self.items(name, default):
            with suppress(RuntimeError):
                found.append(Path(item).expanduser().absolute())
        return found


def first_uid(root: Path) -> int:
    """The first of the 65,536 user numbers of the agents whose company tree is at `root`.

    Installations on one machine get different ranges, far from the numbers that people, services
    and containers have.
    """
    place = int.from_bytes(sha256(os.fsencode(root)).digest()[:8]) % UID_RANGES
    return FIRST_UID_RANGE + place * UIDS


def require_safe_production(
    *,
    secret_key: str,
    allowed_hosts: list[str],
    debug: bool,
    encrypted: bool = True,
    proxies: Sequence[IPv4Network | IPv6Network] = (),
    metrics_token: str = "",
    origins: Sequence[str] = (),
) -> None:
    """Raise ImproperlyConfigured for what is never safe where people and agents work."""
    if len(secret_key) < SHORTEST_SECRET:
        raise ImproperlyConfigured(
            f"SECRET_KEY has {len(secret_key)} characters; production needs "
            f"{SHORTEST_SECRET} random ones or more"
        )
    if _shapes(secret_key) < FEWEST_SHAPES or secret_key.startswith("django-insecure-"):
        raise ImproperlyConfigured(
            "SECRET_KEY is not random: it repeats itself or follows the alphabet; "
            "production needs a random one"
        )
    if not allowed_hosts or any(map(_is_any_host, allowed_hosts)):
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS must name the hosts in production, not '*' or a top domain (.com)"
        )
    if debug:
        raise ImproperlyConfigured("DEBUG must be off in production: its pages show secrets")
    if not encrypted:
        raise ImproperlyConfigured(
            "SECURE_SSL_REDIRECT must be on in production: keys and sessions would travel "
            "unencrypted. Name the proxy that encrypts in TRUSTED_PROXIES, "
            "and let it set X-Forwarded-Proto"
        )
    if metrics_token and len(metrics_token) < SHORTEST_TOKEN:
        raise ImproperlyConfigured(
            f"METRICS_TOKEN can be guessed: give it {SHORTEST_TOKEN} random characters or more"
        )
    _require_own_origins(origins)
    for network in proxies:
        if not network.is_private and network.prefixlen < WIDEST_PROXIES[network.version]:
            raise ImproperlyConfigured(
                f"TRUSTED_PROXIES={network} believes the internet; name your proxies"
            )


def _require_own_origins(origins: Sequence[str]) -> None:
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme != "https" or _is_any_host((parts.hostname or "").lstrip("*")):
            raise ImproperlyConfigured(
                f"CSRF_TRUSTED_ORIGINS={origin} believes forms of sites that are not yours: name "
                "the address that people use, such as https://nexus.example"
            )


def _is_any_host(host: str) -> bool:
    name = host.strip(".")
    return name in ("", "*") or (host.startswith(".") and "." not in name)


def _shapes(secret: str) -> int:
    """How many different steps of three neighbours it has: few where it repeats or counts up."""
    steps = [ord(after) - ord(before) for before, after in pairwise(secret)]
    return len(set(pairwise(steps)))


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where outgoing mail is handed in."""

    host: str
    port: int
    user: str
    password: str
    encrypted: str
    """`starttls`, `tls` from the first byte on, or nothing."""


def mail_server_from_url(url: str) -> MailServer:
    """The server of `smtp://user:password@host:port` (STARTTLS: `smtp+starttls`, TLS: `smtps`)."""
    ways = {"smtp": ("", 25), "smtp+starttls": ("starttls", 587), "smtps": ("tls", 465)}
    try:
        parts = urlsplit(url)
        named_port = parts.port
    except ValueError as problem:
        raise ImproperlyConfigured(f"EMAIL_URL is no address: {problem}") from None
    if parts.scheme not in ways or not parts.hostname:
        raise ImproperlyConfigured(f"EMAIL_URL must be {', '.join(ways)}://host")
    encrypted, port = ways[parts.scheme]
    return MailServer(
        host=unquote(parts.hostname),
        port=named_port or port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        encrypted=encrypted,
    )


def kept_secret(path: Path) -> str:
    """The development secret in this file, readable by its owner alone; made on first use.

    An empty file is what a machine that ended just after an earlier first use may leave.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    is_empty = path.exists() and not path.stat().st_size
    if is_empty or not path.exists():
        place(path, secrets.token_urlsafe(64).encode(), replace=is_empty)
    return path.read_text("ascii").strip()
