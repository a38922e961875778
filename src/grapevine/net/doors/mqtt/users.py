"""Who may enter a door: names and passwords from a file as mosquitto_passwd writes it.

name:$7$iterations$salt$hash     PBKDF2 with SHA-512; salt and hash in base 64
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from pathlib import Path

from grapevine.model.errors import UsageError

_KIND, _MOST_ITERATIONS = "7", 1_000_000


class Users:
    """The users of one file, read once."""

    def __init__(self, file: Path) -> None:
        try:
            lines = file.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{file}: cannot be read ({error}); write it with mosquitto_passwd -c {file} NAME"
            ) from None
        self._users: dict[str, tuple[int, bytes, bytes]] = {}
        for number, line in enumerate(lines, 1):
            if line and not line.startswith("#"):
                name, entry = _parsed(line, f"{file}, line {number}")
                self._users[name] = entry

    def may_enter(self, name: str | None, password: bytes | None) -> bool:
        """Whether this is the name and password of a user."""
        iterations, salt, wanted = self._users.get(name or "", (101, b"", b""))  # as much work for a wrong name
        found = hashlib.pbkdf2_hmac("sha512", password or b"", salt, iterations, max(len(wanted), 1))
        return bool(wanted) and hmac.compare_digest(found, wanted)


def _parsed(line: str, where: str) -> tuple[str, tuple[int, bytes, bytes]]:
    name, _, rest = line.partition(":")
    fields = rest.split("$")
    try:
        if not name or len(fields) != 5 or fields[1] != _KIND or not 1 <= int(fields[2]) <= _MOST_ITERATIONS:
            raise ValueError
        salt, wanted = (base64.b64decode(text, validate=True) for text in fields[3:])
        if not wanted:
            raise ValueError
    except (ValueError, binascii.Error):
        raise UsageError(f"{where}: is no NAME:$7$ITERATIONS$SALT$HASH; write it with mosquitto_passwd") from None
    return name, (int(fields[2]), salt, wanted)
