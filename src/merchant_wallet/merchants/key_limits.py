"""The name and the limits of a merchant's key: what may be typed, and which limits are wider. Pure.

Rules:
- An empty list of operations or networks means: no limit of the key's own. The merchant's settings hold too.
- Limits are wider than others if they allow anything that the others do not.
"""

from collections.abc import Iterable
from ipaddress import ip_network
from typing import Final

import msgspec

from merchant_wallet.base.invisible_text import clean, note_invisible
from merchant_wallet.merchants.records import OPERATIONS, Network
from merchant_wallet.merchants.settings import SETTINGS, SettingRefused

ANY: Final = "any"
"""Typed for "no limit"."""
MAX_NAME: Final = 64
MAX_NETWORKS: Final = 50
OPERATIONS_LIMIT: Final = "operations"
NETWORKS_LIMIT: Final = "networks"


class KeyLimits(msgspec.Struct, frozen=True):
    """The operations and source networks that a key may use, sorted. Empty: all."""

    operations: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def show(self) -> dict[str, str]:
        """Both limits as texts that can be typed again."""
        return {
            OPERATIONS_LIMIT: " ".join(self.operations) or ANY,
            NETWORKS_LIMIT: " ".join(self.networks) or ANY,
        }


NO_LIMITS: Final = KeyLimits()


def parse_name(text: str) -> str:
    """The name of a key. Raises SettingRefused."""
    name = clean(text)
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        note = note_invisible(name)
        raise SettingRefused(f"A key's name must be 1 to {MAX_NAME} printable characters{note}.")
    return name


def parse_operations(text: str) -> tuple[str, ...]:
    """Typed operations, separated by spaces or commas. Raises SettingRefused."""
    found = sorted(set(_split(text)))
    for one in found:
        if one not in OPERATIONS:
            raise SettingRefused(
                f"{one!r} is no operation. Operations are: {', '.join(OPERATIONS)}, or {ANY}."
            )
    return tuple(found)


def parse_networks(text: str) -> tuple[str, ...]:
    """Typed networks, separated by spaces or commas. Raises SettingRefused."""
    words = _split(text)
    if len(words) > MAX_NETWORKS:
        raise SettingRefused(f"A key has at most {MAX_NETWORKS} networks, these are {len(words)}.")
    try:
        found = SETTINGS[NETWORKS_LIMIT].parse(" ".join(words)) if words else []
    except ValueError as error:
        raise SettingRefused(f"networks must be such as 192.0.2.0/24, or {ANY}: {error}.") from None
    assert isinstance(found, list)
    return tuple(found)


def _split(text: str) -> list[str]:
    words = text.replace(",", " ").split()
    return [] if words in ([], [ANY]) else words


def list_wider(before: KeyLimits, after: KeyLimits) -> list[str]:
    """Which of the two limits allow something that they did not."""
    wider = []
    if not _has_all(before.operations, after.operations):
        wider.append(OPERATIONS_LIMIT)
    if not admits_all(map(ip_network, before.networks), map(ip_network, after.networks)):
        wider.append(NETWORKS_LIMIT)
    return wider


def is_covered(limits: KeyLimits, others: Iterable[KeyLimits]) -> bool:
    """Whether one of the others allows everything that these limits allow."""
    return any(not list_wider(other, limits) for other in others)


def _has_all(outer: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    return not outer or (bool(inner) and set(inner) <= set(outer))


def admits_all(outer: Iterable[Network], inner: Iterable[Network]) -> bool:
    """Whether the outer networks admit every address that the inner ones admit. No networks admit all."""
    around, within = list(outer), list(inner)
    if not around:
        return True
    return bool(within) and all(_is_within(one, around) for one in within)


def _is_within(inner: Network, networks: list[Network]) -> bool:
    # `subnet_of` refuses to compare the two versions.
    return any(
        inner.version == outer.version
        and outer.network_address <= inner.network_address  # type: ignore[operator]  # the same version
        and inner.broadcast_address <= outer.broadcast_address  # type: ignore[operator]  # as above
        for outer in networks
    )
