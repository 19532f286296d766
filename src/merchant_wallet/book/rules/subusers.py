"""Read balances, read a sub-user, open a wallet. Pure (interface 4.5, 4.6)."""

from merchant_wallet.book.chart import MERCHANT_KFB_ID, MERCHANT_USDT_ID
from merchant_wallet.book.commands import ReadBalances, ReadSubUser, Register
from merchant_wallet.book.journal import record
from merchant_wallet.book.outcomes import SUB_USER_UNKNOWN, Balances, Outcome, SubUserFound
from merchant_wallet.book.state import Draft
from merchant_wallet.book.sub_user import SubUser


def read_balances(draft: Draft, command: ReadBalances) -> Outcome:
    """The merchant's two balances."""
    return Balances(draft.balances[MERCHANT_USDT_ID], draft.balances[MERCHANT_KFB_ID])


def read(draft: Draft, command: ReadSubUser) -> Outcome:
    """One sub-user and its balance. Refuses 40400."""
    user_id = draft.user_id_by_ext.get(command.ext_user_id)
    return SUB_USER_UNKNOWN if user_id is None else _found(draft, user_id, created=False)


def register(draft: Draft, command: Register) -> Outcome:
    """Open a wallet. Its entry has no postings; through it the hash chain covers whose wallet it is.

    A sub-user that exists already is returned as it is. So two requests at once open one wallet.
    """
    user_id = draft.user_id_by_ext.get(command.ext_user_id)
    if user_id is not None:
        return _found(draft, user_id, created=False)
    facts = (
        f"{len(command.ext_user_id)}:{command.ext_user_id}{command.currency};{command.address_index};"
        f"{command.evm_address.hex()};{command.tron_address.hex()}"
    )
    entry = record(draft, "register", (), facts=facts)
    sub_user = SubUser(
        user_id=entry.entry_id,
        ext_user_id=command.ext_user_id,
        username=command.ext_user_id,
        currency=command.currency,
        evm_address=command.evm_address,
        tron_address=command.tron_address,
    )
    draft.add_sub_user(sub_user, 0)
    draft.changes.registered.append(sub_user.user_id)
    draft.changes.address_indexes.append(command.address_index)
    return _found(draft, sub_user.user_id, created=True)


def _found(draft: Draft, user_id: int, *, created: bool) -> SubUserFound:
    sub_user = draft.sub_users[user_id]
    return SubUserFound(
        user_id,
        sub_user.ext_user_id,
        sub_user.username,
        sub_user.currency,
        draft.balances[user_id],
        sub_user.evm_address,
        sub_user.tron_address,
        created,
    )
