"""Whether a password is a user's: by a file of hashes, which ``qpubsub passwd`` writes, or by PAM.

The file has one ``user:hash`` on each line; ``#`` begins a comment. The hashes are scrypt's, with their parameters and
salt. Users are compared in small letters.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import ssl
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from commands.config.settings import ConfigError, ListenerTls
from rfh2.distribution import how_to_install

IsRight = Callable[[str, str], bool]
"""Whether a user, in small letters, has this password. It may take a second, and is called on threads."""

_SCRYPT: Final = "scrypt"
_N, _R, _P, _SALT_BYTES, _KEY_BYTES = 1 << 14, 8, 1, 16, 32
_MEMORY: Final = 64 << 20
_LONGEST_USER: Final = 64


def password_hash(password: str, salt: bytes | None = None) -> str:
    """What the users' file holds for *password*."""
    salt = os.urandom(_SALT_BYTES) if salt is None else salt
    key = hashlib.scrypt(password.encode(), salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=_KEY_BYTES)
    return "$".join((_SCRYPT, str(_N), str(_R), str(_P), b64encode(salt).decode(), b64encode(key).decode()))


def is_password(password: str, stored: str) -> bool:
    """Whether *stored* is a hash of *password*."""
    try:
        kind, n, r, p, salt, key = stored.split("$")
        if kind != _SCRYPT or int(n) > 1 << 20:
            return False
        wanted = b64decode(key, validate=True)
        made = hashlib.scrypt(
            password.encode(),
            salt=b64decode(salt, validate=True),
            n=int(n),
            r=int(r),
            p=int(p),
            maxmem=_MEMORY * 16,
            dklen=len(wanted),
        )
    except (ValueError, Base64Error):
        return False
    return hmac.compare_digest(made, wanted)


def in_users_file(path: Path) -> IsRight:
    """Compares with the hashes in the file, which is read again each time; nobody's is right where there is no file."""
    nobody = password_hash("", bytes(_SALT_BYTES))

    def is_right(user: str, password: str) -> bool:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            lines = []
        stored = next((hash_of for name, hash_of in map(_entry, lines) if name == user), None)
        # An unknown user takes as long as a known one.
        return is_password(password, stored or nobody) and bool(user and stored)

    return is_right


def _entry(line: str) -> tuple[str, str]:
    """The user and the hash of one line; two empty strings for a comment."""
    if line.lstrip().startswith("#"):
        return "", ""
    name, _, stored = line.partition(":")
    return name.strip().lower(), stored.strip()


def valid_user(name: str) -> str:
    """*name* as the file has it. Raises ValueError where no user can have this name."""
    user = name.strip().lower()
    if not user or len(user) > _LONGEST_USER or user.startswith("#") or not user.isprintable() or ":" in user:
        raise ValueError(f"{name!r} is not a user: 1 to {_LONGEST_USER} characters without a colon, and no # in front")
    return user


def changed_users(lines: Iterable[str], user: str, stored: str | None) -> list[str]:
    """The lines of a users' file with another hash for *user*, in place or at the end; without the user for None."""
    changed, line = [], None if stored is None else f"{user}:{stored}"
    for each in lines:
        if _entry(each)[0] != user:
            changed.append(each)
        elif line is not None:
            changed.append(line)
            line = None
    return changed if line is None else [*changed, line]


def by_pam(service: str) -> IsRight:
    """Asks PAM: the service is the name of a file in ``/etc/pam.d``. Raises ConfigError without the extra ``pam``."""
    try:
        import pamela  # noqa: PLC0415 - an extra
    except (ImportError, OSError, AttributeError) as error:
        why = f"PAM needs the package pamela ({error}): {how_to_install('pam')}"
        raise ConfigError("[listener.connauth] authenmd", why) from error

    def is_right(user: str, password: str) -> bool:
        try:
            pamela.authenticate(user, password, service=service, resetcred=0)
        except pamela.PAMError:
            return False
        return True

    return is_right


def tls_context(files: ListenerTls, table: str) -> ssl.SSLContext:
    """What a server with these files needs. table: of the configuration, for errors. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.cert_file, files.key_file)
        if files.ca_file is not None:
            context.load_verify_locations(files.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise ConfigError(table, f"the certificate or key cannot be used: {error}") from error
    return context
