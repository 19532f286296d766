"""Why acts fail, as sentences that pages know in both languages. Pure."""

from typing import Final

NOBODY: Final = "no worker began it in time: is a `work` or an `up` running?"
NOT_ALLOWED: Final = "who asked for it was disabled or reset, or has lost the right: ask again"
LOST: Final = "its worker ended. What it had done stays done: look before you ask again."
NO_BLOCK: Final = "no node of the chain has the block before it"
NOT_READ_YET: Final = "the chain was not read up to that block yet, so no block was skipped there"
NOT_READ_SO_FAR: Final = "the chain was not read up to the last block yet: name an earlier one, or none"
DECIDED: Final = "it is no longer held as it was then: look at the deposit"
SUB_USER_CHANGED: Final = "the sub-user's limits or pause were changed meanwhile: look at the sub-user"
SCREENED: Final = "screening holds it: decide there first"
CELL_AWAY: Final = "the merchant's cell is away, so nothing was changed"
NOTHING_IN_SANDBOX: Final = "there is nothing to sweep: the sandbox's chains hold no real deposits"
ROLLED_BACK: Final = "the database was rolled back, so nothing is swept"
NO_WALLET: Final = "no hot wallet is known yet: workers make theirs known when they begin to pay"
NO_PRICE: Final = "the price of the chain's coin is not set in the settings, so nothing new is swept"
NOT_SET_UP: Final = "the signer has no key for the chain, or the chain has no node"
