"""`getMerchantCustomer` on the wire (interface 4.5)."""

from merchant_wallet.api.operation import FollowUpDependencies, Operation, OperationContext
from merchant_wallet.api.wire import NUMBER, TEXT, DataItem, Fields, refuse_direction_control, require
from merchant_wallet.base.addresses import to_eip55, to_tron
from merchant_wallet.base.money import format_units
from merchant_wallet.book.commands import Command, ReadSubUser, Register
from merchant_wallet.book.outcomes import SUB_USER_UNKNOWN, Outcome, SubUserFound
from merchant_wallet.merchants.records import Merchant


def _prepare(merchant: Merchant, fields: Fields, context: OperationContext) -> ReadSubUser:
    return ReadSubUser(require(fields, "extUserId", 20))


def _answer(merchant: Merchant, found: SubUserFound, context: OperationContext) -> list[DataItem]:
    return [
        ("userId", str(found.user_id), NUMBER),
        ("extUserId", found.ext_user_id, TEXT),
        ("username", found.username, TEXT),
        ("currency", found.currency, TEXT),
        ("balance", format_units(found.balance_units), NUMBER),
        ("url", context.make_link(merchant.merchant_id, found.user_id), TEXT),
        ("address", to_eip55(found.evm_address), TEXT),
        ("tronAddress", to_tron(found.tron_address), TEXT),
    ]


async def _follow_up(
    merchant: Merchant, command: Command, outcome: Outcome, dependencies: FollowUpDependencies
) -> Outcome:
    """Register an unknown sub-user if the merchant's settings allow it."""
    if outcome is not SUB_USER_UNKNOWN or not merchant.auto_register or not isinstance(command, ReadSubUser):
        return outcome
    # Checked only for a new sub-user: an existing one must be found, or its money is out of reach.
    refuse_direction_control("extUserId", command.ext_user_id)
    issued = await dependencies.issue_address(merchant)
    register = Register(command.ext_user_id, merchant.wallet_currency, *issued)
    return await dependencies.ask(merchant, register)


GET_CUSTOMER = Operation("getMerchantCustomer", _prepare, _answer, follow_up=_follow_up, only_reads=True)
