"""Which base back-ups of a store count, and what a store has that is none. For `backup` and `doctor`.

Rules:
- With the key file's identity and the master key only authentic back-ups count.
- Without them names count, which everybody has chosen who can write to the store.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from merchant_wallet.base.counted import count_of
from merchant_wallet.cli import terminal
from merchant_wallet.cli.failures import Failure

if TYPE_CHECKING:
    from merchant_wallet.base.settings import Settings
    from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue
    from merchant_wallet.postgres.backups.encryption import BackupKey
    from merchant_wallet.postgres.backups.stores import Store

MAX_NAMED: Final = 20
"""Objects that are named in one answer. Others may have made thousands."""


class Authentic(NamedTuple):
    """The newest authentic base back-ups, the oldest first. `faults`: why newer ones are not."""

    bases: "Sequence[BaseBackup]"
    faults: Sequence[str]


def list_authentic(store: "Store", key: "BackupKey", bases: "Sequence[BaseBackup]", most: int) -> Authentic:
    """The last `most` of these base back-ups that are authentic. Raises StoreAway."""
    from merchant_wallet.postgres.backups.errors import BackupError, StoreAway
    from merchant_wallet.postgres.backups.fetching import require_authentic

    found: list[BaseBackup] = []
    faults = []
    for base in reversed(bases):
        try:
            require_authentic(store, key, base)
        except StoreAway:
            raise
        except BackupError as error:
            faults.append(str(error))
        else:
            found.append(base)
        if len(found) == most:
            break
    return Authentic(found[::-1], faults)


def choose_kept(
    settings: "Settings", store: "Store", found: "Catalogue", keep: int
) -> "Sequence[BaseBackup]":
    """The newest `keep` base back-ups, which supersede older ones. Empty if there are fewer.

    Raises Failure.
    """
    from merchant_wallet.processes.wal_shipping import find_authenticating_key

    key = find_authenticating_key(settings)
    if key is None:
        _require_past(found.bases)
        kept: Sequence[BaseBackup] = found.sort_bases()[-keep:]
    else:
        kept, faults = list_authentic(store, key, found.sort_bases(), keep)
        _note_some([f"Not counted: {fault}" for fault in faults])
    if len(kept) == keep:
        return kept
    counted = count_of(len(kept), "back-up")
    terminal.note(f"Nothing is removed: {counted} can be counted, and {keep} are to be kept.")
    return ()


def _require_past(bases: "Sequence[BaseBackup]") -> None:
    from merchant_wallet.base.clock import now_ms
    from merchant_wallet.postgres.backups.names import parse_moment

    for base in bases:
        if max(parse_moment(base.name), base.completed.ended_ms) > now_ms():
            raise Failure(
                f"The back-up {base.name} is dated in the future: a clock is wrong, or somebody else has "
                "made the name. Nothing is removed. Let `prune` read the key file and the master key, which "
                "show who made it, or remove it from the store."
            )


def note_strange(names: Sequence[str]) -> None:
    """Name what is no object of a back-up."""
    # A name in a folder may be no UTF-8.
    spelt = [name.encode(errors="backslashreplace").decode() for name in names]
    _note_some([f"Left out, no back-up has such a name: {name}" for name in spelt])


def _note_some(texts: Sequence[str]) -> None:
    for text in texts[:MAX_NAMED]:
        terminal.note(text)
    if len(texts) > MAX_NAMED:
        terminal.note(f"{len(texts) - MAX_NAMED} more like these.")
