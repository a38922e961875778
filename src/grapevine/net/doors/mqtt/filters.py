"""Names and filters of topics (MQTT 5, section 4.7)."""

from __future__ import annotations

SEPARATOR, ONE, REST = "/", "+", "#"
SYSTEM = "$"  # names that begin so are the server's own
CHARACTERS = 1_024  # of the longest name or filter; MQTT would allow 65,535 bytes


def is_name(text: str) -> bool:
    """Whether a client may publish under this name (MQTT-3.3.2-2, MQTT-4.7.3-1)."""
    return 0 < len(text) <= CHARACTERS and not text.startswith(SYSTEM) and ONE not in text and REST not in text


def is_filter(text: str) -> bool:
    """Whether it is a filter: `#` only as the last level, `+` only as a whole one (MQTT-4.7.1-1, MQTT-4.7.1-2)."""
    if not 0 < len(text) <= CHARACTERS:
        return False
    levels = text.split(SEPARATOR)
    return all(
        (ONE not in level or level == ONE) and (REST not in level or (level == REST and place == len(levels) - 1))
        for place, level in enumerate(levels)
    )


def is_shared(text: str) -> bool:
    """Whether it asks for a subscription that several clients share."""
    return text.startswith("$share/")


def has_wildcard(text: str) -> bool:
    """Whether a filter may match several names."""
    return ONE in text or REST in text


def first_level(text: str) -> str | None:
    """The first level of a name or filter; None if it may be any."""
    level = text.split(SEPARATOR, 1)[0]
    return None if level in (ONE, REST) else level


def matches(filter: str, name: str) -> bool:
    """Whether a filter matches a name; one that begins with a wildcard matches no name of the server's own
    (MQTT-4.7.2-1)."""
    if name.startswith(SYSTEM) and first_level(filter) is None:
        return False
    wanted, levels = filter.split(SEPARATOR), name.split(SEPARATOR)
    for place, level in enumerate(wanted):
        if level == REST:
            return True
        if place >= len(levels) or level not in (ONE, levels[place]):
            return False
    return len(wanted) == len(levels)
