"""The control actions of the sandbox, by what they are about."""

from merchant_wallet.sandbox.actions.callbacks import ACCEPT, RESEND
from merchant_wallet.sandbox.actions.deposits import CONFIRM, DEPOSIT, REORGANISE
from merchant_wallet.sandbox.actions.funds import FUND
from merchant_wallet.sandbox.actions.orders import ADVANCE, FAIL, FREEZE
from merchant_wallet.sandbox.actions.screening import RELEASE
from merchant_wallet.sandbox.control import Action

ACTIONS: tuple[Action, ...] = (
    FUND,
    DEPOSIT,
    CONFIRM,
    REORGANISE,
    RELEASE,
    ADVANCE,
    FAIL,
    FREEZE,
    RESEND,
    ACCEPT,
)
