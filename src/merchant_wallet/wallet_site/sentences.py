"""What a movement was, in the sub-user's words. Pure.

Rules: one place says it, for lists, receipts and statements. A movement is told by who did what ("You paid
Harbour Tea"), never by its kind. The merchant's order id stands beside it.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from merchant_wallet.base.chains import CHAINS
from merchant_wallet.sub_users.activity import ActivityLine
from merchant_wallet.web.languages import N_
from merchant_wallet.web.templates import show_money

Translate = Callable[..., str]

DEPOSIT: Final = "deposit"
ADJUST: Final = "adjust"


def tell(line: ActivityLine, say: Translate) -> str:
    """Who did what: the title of a movement."""
    if line.kind == DEPOSIT and line.chain is not None:
        return tell_deposit(line.chain, say)
    if line.kind == ADJUST:
        return _tell_adjustment(line, say)
    if line.direction == "in":
        return say(N_("{name} paid you"), name=line.partner)
    return say(N_("You paid {name}"), name=line.partner)


def tell_deposit(chain: str, say: Translate) -> str:
    """The title of a deposit, also of one that is not credited yet."""
    return say(N_("Deposit from {network}"), network=CHAINS[chain].network)


def tell_more(line: ActivityLine, say: Translate) -> str:
    """The merchant's order, or what a deposit was exchanged into. May be empty."""
    if line.mc_order_id:
        return say(N_("Order {id}"), id=line.mc_order_id)
    if line.rate_e8 and line.sent_units:
        return say(
            N_("Exchanged {sent} USDT into {arrived} {currency}"),
            sent=show_money(line.sent_units),
            arrived=show_money(line.amount_units),
            currency=line.currency,
        )
    return ""


def tell_others(line: ActivityLine, say: Translate) -> str:
    """The same for a person who is not the wallet's owner."""
    if line.kind in (DEPOSIT, ADJUST):
        return tell(line, say)
    if line.direction == "in":
        return say(N_("Payment from {name}"), name=line.partner)
    return say(N_("Payment to {name}"), name=line.partner)


def tell_network(line: ActivityLine) -> str:
    """The network of a deposit, as people call it and as it is chosen: "TRON (TRC20)"."""
    assert line.chain is not None
    return f"{CHAINS[line.chain].network} ({line.chain})"


def _tell_adjustment(line: ActivityLine, say: Translate) -> str:
    """The operator's reason is for operators, so the sub-user is told who did it and which way."""
    if line.is_test:
        return say(N_("Test money from the sandbox"))
    if line.direction == "in":
        return say(N_("Credit by the platform"))
    return say(N_("Debit by the platform"))


def tell_in_one(line: ActivityLine, say: Translate) -> str:
    """The whole sentence: "You paid Harbour Tea · Order 1234"."""
    return " · ".join(part for part in (tell(line, say), tell_more(line, say)) if part)


def for_templates(say: Translate) -> dict[str, Callable[..., str]]:
    """The sentences as functions of a line (`tell_deposit`: of a chain), for templates."""
    return {
        "tell": partial(tell, say=say),
        "tell_others": partial(tell_others, say=say),
        "tell_more": partial(tell_more, say=say),
        "tell_in_one": partial(tell_in_one, say=say),
        "tell_network": tell_network,
        "tell_deposit": partial(tell_deposit, say=say),
    }
