"""The causes that payouts, deposits, screening and callbacks record in English, and how a page says them.

Rules:
- A cause is stored as it was found, with its numbers and hashes.
- `CAUSES` is the only table of them. A text in braces is a value, which may be a cause itself.
- What is in no row, such as the words of a node or of a person, is shown as it is.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from merchant_wallet.web.languages import N_

CAUSES: Final = (
    # The hot wallet and its signer.
    N_("the hot wallet of {chain} has {free} free, {needed} are needed"),
    N_("the balance of the hot wallet of {chain} is not known yet, although the chain was asked"),
    N_(
        "the balance of the hot wallet of {chain} was stored by a clock that is {seconds} s ahead of "
        "this one: compare the clocks of all machines"
    ),
    N_("the balance of the hot wallet of {chain} is {age} s old, and at most {most} s are trusted"),
    N_("the hot wallet of {chain} is not {address} any more"),
    N_(
        "payouts on {chain} from the hot wallet {former} are under way, and the key here is that of "
        "{address}: bring the old one back until they are final"
    ),
    N_("the key here is that of {address}, a {own} of the platform: use another key"),
    N_("order {order} is paid by the hot wallet {address}, whose key is not here"),
    N_("The hot wallet of {chain} is {hot}, and the key here is that of {here}. {why}"),
    N_("not known"),
    N_(
        "The keystore has no seed, which would show that the wallet is ours: copy seed.json of this "
        "database's keystore into it, or run `merchant-wallet wallets take` if you know that it is."
    ),
    N_("the signer refuses: {reason}"),
    N_("the signer refused: {reason}"),
    N_("order {order} could not be signed any more: {reason}"),
    N_("payouts were stopped for a moment"),
    N_(
        "the chain knows {known} of the hot wallet, of which some are not ours: {given} given out, "
        "{lost} of them given back"
    ),
    N_("{number} transactions"),
    N_("{number} transaction"),
    N_("{number} nonces were"),
    N_("{number} nonce was"),
    # The token and its issuer.
    N_("the token is paused by its issuer"),
    N_("the token's owner has paused all transfers"),
    N_("the token has blacklisted the hot wallet"),
    N_("the token has blacklisted our own wallet"),
    N_("the token has blacklisted the recipient"),
    N_(
        "{said} of {asked} nodes that answered say that the {who} is blacklisted: all must, and at "
        "least {quorum}"
    ),
    N_("recipient"),
    N_("hot wallet"),
    N_("deposit address"),
    N_("cold wallet"),
    N_("an address is on the token's blacklist, but not in final blocks of all nodes"),
    N_(
        "the token's issuer takes a fee: {fee} of {amount} USDT would not arrive; nothing is signed "
        "while the fee is in force"
    ),
    N_("{reason}; nothing is signed until the settings name it"),
    N_("the issuer has replaced the token's contract by {address}"),
    N_("the token refuses the simulated transfer: {reason}"),
    N_("the transfer would fail now: {reason}"),
    # Balances, fees and nodes.
    N_("the hot wallet holds {held} units of {needed}"),
    N_("the hot wallet holds less than the order"),
    N_("the hot wallet holds {held} wei of {needed} for the fee"),
    N_("the hot wallet holds {held} wei of {needed} for the fee, {count} more on their way included"),
    N_("the hot wallet holds {held} sun, and {count} on the way may burn {needed}"),
    N_("the sender holds {held} wei of {needed} for the fee"),
    N_("too little TRX to send it: {reason}"),
    N_("the chain may cost {cost} wei, above the cap of {cap}"),
    N_("the chain's fee of {cost} sun is above the cap of {cap}"),
    N_("a transfer needs {gas} units of gas, above {most}"),
    N_("the hot wallet has delegated code (EIP-7702), so nodes take its payouts one at a time"),
    N_("nodes are at blocks {low} and {high}: one is behind, or ahead"),
    N_("the nodes are too far apart in time: one is behind, or ahead"),
    N_(
        "state not available: the final block is {depth} blocks below the newest, and a full node "
        "keeps the state of {kept}. Payouts continue when blocks become final again, or with an "
        "archive node ({reason})"
    ),
    N_(
        "nodes say that the wallet has sent {counts} transactions; no two nodes agree and none shows "
        "the last one. Configure two nodes, or send an empty transaction from the wallet to itself"
    ),
    # Signed transfers and what became of them.
    N_("what was signed before is not proven void"),
    N_("{hash} came to nothing. It is signed again in {seconds} s"),
    N_("{count} transfers in a row came to nothing: {reason}"),
    N_("it can't be replaced: {reason}"),
    N_("{hash} ended without effect: {reason}"),
    N_("{hash} expired and is in none of the blocks that could hold it"),
    N_("{hash} has expired and is in no block, but one node alone proves nothing: configure a second node"),
    N_("{hash} has expired; {reason}"),
    N_("{hash} is in a block, but no two nodes say what became of it"),
    N_("{hash} succeeded without a Transfer log of the token from our wallet"),
    N_("{hash} was signed for chain {chain}: restore its settings"),
    N_("the receipt of {hash} says neither success nor failure"),
    N_("the nodes contradict each other about {hash}"),
    N_("the nodes call different blocks final"),
    N_("too few nodes answer"),
    N_("too few nodes say: {reason}"),
    N_("one is behind"),
    N_("the transfer failed on the chain: {reason}"),
    N_("{result} in block {block}"),
    N_("{hash} reverted in block {block}, {block_hash}"),
    N_("payout {order} was paid more than once: {hashes}"),
    N_("nodes disagree about payout {order}: {reason}"),
    N_("a second look found something else"),
    N_("its nonce is {nonce}, the chain is at {next}: earlier nonces are missing"),
    N_("{node} shows a receipt that contradicts its own blocks"),
    N_("{node} says that nonce {nonce} is spent, but shows no transaction that spent it"),
    N_("{node} has no receipt of {hash}, which is in its block {block}"),
    N_(
        "nonce {nonce} was spent by {hash}, which pays exactly the order but is not recorded here: "
        "was the database restored?"
    ),
    N_("nonce {nonce} was spent by {hash}, which was never signed for a payout here"),
    N_("nonce {nonce} was spent by {hash}, which was never signed for a payout here, in block {block}"),
    N_("one node shows as final what another does not: {reason}"),
    N_("nothing was paid: {reason}"),
    N_("the sandbox lets this transfer fail"),
    N_("a test of the sandbox froze it"),
    N_("a test value of the sandbox"),
    # Why an order or a hot wallet is frozen, or an order fails.
    N_("the recipient is a {own} of the platform"),
    N_("the journal has no entry for this order"),
    N_("the order and its journal entry differ in merchant's order id, rate or moment"),
    N_("the order and its journal entry differ in what was ordered; the journal says {facts}"),
    N_("the order's amount is not what its journal entry put on hold"),
    N_("the order's journal entry does not match its hash"),
    N_("the order may not be paid: {reason}"),
    N_("{who} approved it while that person's word did not count"),
    N_("approved by {who} at {moment}, whose approvals count from {since} on"),
    N_("approved by {who} at no moment, whose approvals count from {since} on"),
    N_("approved by {who} at {moment}"),
    N_("approved by {who} at no moment"),
    N_("nobody"),
    N_("two people's approval of an order that needs one"),
    N_("approved without two people, although it is above the second limit"),
    N_("approved twice by one person, {first} and {last}"),
    N_("the chain moved {moved} instead of {ordered}"),
    N_("the chain calls {hash} final, which was never signed for this order"),
    N_("custody holds {held} USDT, and {owed} USDT are owed"),
    # Deposits.
    N_("its block {block} has left the chain"),
    N_("no rate USDT:KFB is set"),
    N_("exchange USDT:KFB is paused"),
    N_("the rate USDT:KFB is older than it may be"),
    N_("the rates USDT:KFB and KFB:USDT contradict each other"),
    N_("nothing would arrive at the present rate USDT:KFB"),
    N_("a balance would pass the largest that a book can hold"),
    # Callbacks that were not accepted.
    N_("no answer"),
    N_("not sent: {reason}"),
    N_("no complete answer within {seconds} s"),
    N_("no connection: {reason}"),
    N_("Connection refused"),
    N_("the host can't be found: {reason}"),
    N_("the certificate is not trusted: {reason}"),
    N_("the answer is longer than {count} bytes"),
    N_("HTTP status {number}"),
    N_("HTTP status {number}: {reason}"),
    N_("is a sign-in in front of the endpoint?"),
    N_("is a firewall or a sign-in in front of the endpoint?"),
    N_("the endpoint must take POST"),
    N_("the endpoint must take application/json"),
    N_("only 200 with the word success accepts a callback"),
    N_("redirects are not followed, so notifyUrl must be the endpoint itself"),
    N_("the body of the answer is not the word success"),
    N_("the body of the answer is not the word success: {reason}"),
    N_("it is empty"),
    N_("it is not UTF-8; UTF-16 perhaps"),
    N_("it is a page (HTML); is a sign-in or a firewall in front of the endpoint?"),
    N_("it is a JSON object, and the word must stand alone"),
    N_("it is a JSON array, and the word must stand alone"),
    N_("the word stands in quotation marks, and must stand alone"),
    N_("more than the word stands in it"),
    # Screening.
    N_("this address can't be paid"),
    N_("screening {number}: {reason}"),
    N_("list"),
    N_("list: {reason}"),
    N_("hook"),
    N_("hook: {reason}"),
    N_("payout-limit: {reason}"),
    N_("payout-limit-count: {reason}"),
    N_("first-payout-limit: {reason}"),
    N_("no reason was given"),
    N_("it is outside the payout hours, {hours}"),
    N_("the list can't be read: {reason}"),
    N_("the screening URL gives no answer: {reason}"),
    N_("the screening URL's answer can't be used: {reason}"),
)
"""Every cause, as its text with values in braces. Of two rows that fit the one with fewer values holds."""

SEPARATOR: Final = "; "


def say_cause(cause: str, translate: Callable[..., str]) -> str:
    """A recorded cause in the language of `translate`."""
    for row, values in _match(cause):
        return translate(row, **{name: say_cause(value, translate) for name, value in values.items()})
    first, separator, rest = cause.partition(SEPARATOR)
    if not separator:
        return cause
    return f"{say_cause(first, translate)}{separator}{say_cause(rest, translate)}"


def find_row(cause: str) -> str | None:
    """The row of a cause; None if it has none."""
    return next((row for row, _ in _match(cause)), None)


def _match(cause: str) -> Iterator[tuple[str, dict[str, str]]]:
    for row, form in _read_forms():
        if found := form.fullmatch(cause):
            yield row, found.groupdict()


@cache
def _read_forms() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = sorted(CAUSES, key=lambda row: (row.count("{"), -len(row)))
    return tuple([(row, re.compile(_write_form(row), re.DOTALL)) for row in rows])


def _write_form(row: str) -> str:
    parts = re.split(r"\{([a-z_]+)\}", row)
    return "".join([f"(?P<{part}>.+?)" if place % 2 else re.escape(part) for place, part in enumerate(parts)])
