"""Deposit addresses of new sub-users, issued before the sub-user is registered.

Rules:
- The platform's list has every address before a book has its sub-user. So no address is issued twice, and a
  watcher finds the merchant of each.
- An address index is taken once. If nobody is registered with it, this leaves a gap, which is harmless: the
  address was shown to nobody, and a transfer to it belongs to nobody.
- The index and the addresses are two commits. A transaction over both would hold the merchant's lock while
  the addresses are derived.
"""

from collections.abc import Mapping
from typing import NamedTuple

from merchant_wallet.base.addresses import address_of_child
from merchant_wallet.base.chains import EVM, KEY_NAMES, TRON
from merchant_wallet.merchants import store
from merchant_wallet.merchants.addresses import write_issued
from merchant_wallet.merchants.store import Connection


class IssuedAddress(NamedTuple):
    """An address index of a merchant, and the EVM and the TRON address at it, 20 bytes each."""

    address_index: int
    evm_address: bytes
    tron_address: bytes


async def issue_address(
    home: Connection, merchant_id: int, account_xpubs: Mapping[str, str]
) -> IssuedAddress:
    """Issue the next address of a merchant. Raises MerchantUnknown."""
    index = await store.take_address_index(home, merchant_id)
    addresses = derive_wallets(account_xpubs, index)
    await write_issued(home, merchant_id, addresses)
    return IssuedAddress(index, *addresses)


def derive_wallets(account_xpubs: Mapping[str, str], index: int) -> tuple[bytes, bytes]:
    """The EVM and the TRON address, 20 bytes each, at an address index of a merchant. Pure.

    Raises ValueError if a key is missing or the index is 2**31 or above.
    """
    missing = [name for name in KEY_NAMES if name not in account_xpubs]
    if missing:
        raise ValueError(f"the merchant has no extended public key for {' and '.join(missing)}")
    evm, tron = (address_of_child(account_xpubs[family.key_name], index) for family in (EVM, TRON))
    return evm, tron
