"""The story of the shop Lantern Tea and its customer Alice: eight operations, callbacks, refusals, the book.

Rules: amounts are few and round, so that a reader can add them up.
"""

import json
from decimal import Decimal, InvalidOperation
from typing import Final

from demo.account import Account
from demo.callback_receiver import CallbackReceiver
from demo.calls import SUCCESS, MerchantCalls, read_amount
from demo.deployment import Deployment, Failure, format_command
from demo.transcript import Transcript
from merchant_wallet_client import BadCallbackError, MerchantWallet, OrderCallback, verify_callback

SHOP: Final = "Lantern Tea"
ALICE: Final = "alice"
SHOPS_OWN_WALLET: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
WITHDRAWAL_ID: Final = "10001"
CANCELLED_ID: Final = "10002"
TEAPOT: Final = {"extUserId": ALICE, "currency": "KFB", "amount": "200", "mcOrderId": "teapot-1"}
CALLBACK_TIMEOUT_S: Final = 30.0
CLOSING_BALANCES: Final = {"usdtBalance": Decimal(350), "kfbBalance": Decimal(1538)}
"""1000 − 400 − 250 USDT; 2840 − 1500 + 198 KFB."""

SIGNATURE_MISMATCH: Final = 40101
NONCE_REPEATED: Final = 40103
ORDER_ID_CONFLICT: Final = 40900
BALANCE_INSUFFICIENT: Final = 42200


def open_account(transcript: Transcript, deployment: Deployment, receiver: CallbackReceiver) -> Account:
    """The operator's part: the shop, its fees, the rates, its opening funds. Raises Failure."""

    def run(*arguments: str) -> str:
        return run_and_show(transcript, deployment, *arguments)

    transcript.chapter("The operator opens an account")
    transcript.say(
        f"The operator creates the merchant {SHOP}, sets fees and rates, and credits 1,000 USDT to the shop. "
        "Even that credit needs a reason, and an account that it comes from."
    )
    created = run("merchant", "create", SHOP, "--json")
    run(
        "merchant",
        "set",
        SHOP,
        "--transfer-fee-rate",
        "1%",
        "--withdraw-fee-rate",
        "0.5%",
        "--withdraw-fee-min",
        "1",
        "--approval-limit",
        "300",
        "--deposit-notify-url",
        receiver.url,
    )
    run("rates", "set", "USDT:KFB", "7.10", "--reason", "the first rate")
    run("rates", "set", "KFB:USDT", "0.14", "--reason", "the first rate")
    run("book", "credit", SHOP, "USDT", "1000", "--reason", "opening funds")
    return Account.read(created)


def run_and_show(transcript: Transcript, deployment: Deployment, *arguments: str) -> str:
    """Run a command, show it, and return its output. Raises Failure."""
    said = deployment.run(*arguments)
    transcript.command(format_command(arguments), said)
    return said


class ShopStory(MerchantCalls):
    """The shop's part: its calls over HTTP, and its callback."""

    def __init__(
        self,
        transcript: Transcript,
        client: MerchantWallet,
        deployment: Deployment,
        account: Account,
        receiver: CallbackReceiver,
    ) -> None:
        super().__init__(transcript, client)
        self._deployment = deployment
        self._account = account
        self._receiver = receiver
        self._teapot = ""

    def run(self) -> None:
        """From opening to closing."""
        self._trade()
        self._withdraw()
        self._receive_callback()
        self._show_refusals()
        self._close()

    def _trade(self) -> None:
        self.call("getMerchantBalance", "What is in the till?", "The 1,000 USDT that the operator credited.")
        self.call(
            "exchange",
            "Wallets hold KFB",
            "So the shop exchanges 400 USDT for 2,840 KFB, at 7.1. The optional order id makes a retry safe.",
            amount="400.00",
            sendCurrency="USDT",
            receiveCurrency="KFB",
            mcOrderId="exchange-1",
        )
        alice = self.call(
            "getMerchantCustomer",
            "Alice comes in",
            "She is new, so the look-up opens a wallet for her, with an address on each network.",
            extUserId=ALICE,
        )
        self.call(
            "transferFromMerchantToUser",
            "Alice hands in a voucher",
            "It is worth 1,500 KFB. The shop pays them to the address of her wallet.",
            currency="KFB",
            amount="1500",
            mcOrderId="voucher-1",
            address=str(alice.data["address"]),
        )
        price = "She pays 200 KFB. The fee is 1 %, so 198 arrive."
        bought = self.call("transferFromUserToMerchant", "Alice buys a teapot", price, **TEAPOT)
        self._teapot = str(bought.data["transactionId"])

    def _withdraw(self) -> None:
        quote = "It would like to withdraw 250 USDT. The fee of 0.5 % is 1.25, above the minimum of 1."
        self.call("getWithdrawFee", "What would a withdrawal cost?", quote, amount="250.00", currency="USDT")
        created = self.call(
            "createMerchantWithdrawOrder",
            "The shop withdraws",
            "The order and the hold of its amount are one commit. Status 0 means that it is not paid yet.",
            **self._withdrawal(WITHDRAWAL_ID, "250.00"),
        )
        self.open(
            "queryOrder",
            "Has it arrived?",
            "The shop asks until the payment is final on the sandbox's chain.",
        )
        self.follow_order(created, WITHDRAWAL_ID)

    def _withdrawal(self, mc_order_id: str, amount: str) -> dict[str, str]:
        return {
            "amount": amount,
            "chainType": "TRC20",
            "currency": "USDT",
            "mcOrderId": mc_order_id,
            "address": SHOPS_OWN_WALLET,
            "notifyUrl": self._receiver.url,
        }

    def _receive_callback(self) -> None:
        """The callback, which was written in the same commit as the end of the order."""
        self.transcript.chapter("The shop is notified", "callback")
        self.transcript.say(
            "The shop need not ask: when an order ends, the service sends a callback to its notifyUrl. "
            "It repeats the callback until the answer is `success`. Here the demo itself receives it."
        )
        self._take_callback(WITHDRAWAL_ID, "2", "paid, with the transaction's hash")
        dear = "310 USDT are above the approval limit. The operator does not approve, but cancels."
        request = self.client.prepare("createMerchantWithdrawOrder", self._withdrawal(CANCELLED_ID, "310"))
        created = self.show(dear, request)
        run_and_show(self.transcript, self._deployment, "withdrawals", "cancel", str(created.data["orderId"]))
        self._take_callback(CANCELLED_ID, "4", "cancelled, and the shop has its 310 USDT back")

    def _take_callback(self, mc_order_id: str, status: str, meaning: str) -> None:
        """The next callback: for this order and status, with both signatures right."""
        callback = self._receiver.wait(CALLBACK_TIMEOUT_S)
        self.transcript.callback(callback)
        try:
            order = verify_callback(callback.body, callback.headers, self._account.secret)
        except BadCallbackError as error:
            raise Failure(f"the callback's signature is wrong: {error}: {callback.body}") from error
        expected = (mc_order_id, status)
        if not isinstance(order, OrderCallback) or (order.mc_order_id, order.txn_status) != expected:
            raise Failure(f"the callback is not about status {status} of {mc_order_id}: {callback.body}")
        self.transcript.passed(f"status {status} of order {mc_order_id}: {meaning}")
        self.transcript.passed("sign: the callback was signed with the shop's secret")
        try:
            verify_callback(callback.body, callback.headers, self._account.callback_secret)
        except BadCallbackError as error:
            raise Failure(f"the callback's webhook-signature is wrong: {callback.headers}") from error
        self.transcript.passed("webhook-signature: and with its callback secret")

    def _show_refusals(self) -> None:
        self.transcript.chapter("What the service refuses")
        once = self.client.prepare("getMerchantBalance", {})
        self.send(once, SUCCESS)
        self.show("An attacker sends a recorded request again, byte for byte.", once, NONCE_REPEATED)

        exchange = {"amount": "1.00", "sendCurrency": "KFB", "receiveCurrency": "USDT"}
        keys = (self.client.base_url, self.client.app_key, "a secret that is not the shop's")
        stranger = MerchantWallet(*keys)
        forged = "Someone without the secret signs an exchange. A sandbox shows the string to sign."
        self.show(forged, stranger.prepare("exchange", exchange), SIGNATURE_MISMATCH)
        stranger.close()

        first = (
            "The shop lost the answer about the teapot and repeats the order. It gets the same answer, and "
            "Alice pays once."
        )
        again = self.show(first, self.client.prepare("transferFromUserToMerchant", TEAPOT), SUCCESS)
        if again.data["transactionId"] != self._teapot:
            raise Failure("the repeated order has become a second transaction")
        self.transcript.passed(f"transaction {self._teapot}, as the first time")

        dearer = self.client.prepare("transferFromUserToMerchant", {**TEAPOT, "amount": "300"})
        self.show("The same order id for another amount is a mistake.", dearer, ORDER_ID_CONFLICT)

        samovar = {**TEAPOT, "amount": "1300.000001", "mcOrderId": "samovar-1"}
        unpayable = self.client.prepare("transferFromUserToMerchant", samovar)
        self.show("Alice has 1,300 KFB. One millionth more is too much.", unpayable, BALANCE_INSUFFICIENT)

    def _close(self) -> None:
        self.transcript.chapter("The shop closes its books")
        sums = "The shop's sums: 1000 − 400 − 250 = 350 USDT, 2840 − 1500 + 198 = 1538 KFB. The service:"
        balance = self.show(sums, self.client.prepare("getMerchantBalance", {}), SUCCESS)
        if {name: read_amount(balance, name) for name in CLOSING_BALANCES} != CLOSING_BALANCES:
            raise Failure("the shop's sums and the service's balances differ")
        self.transcript.passed("to the last millionth")


def check_book(transcript: Transcript, deployment: Deployment) -> None:
    """The operator's part at the end: verify the journal and show the accounts. Raises Failure."""
    transcript.chapter("The operator checks the book")
    transcript.say("The journal is replayed from its first entry: hashes, balances, orders.")
    entries, sums = _read_book(run_and_show(transcript, deployment, "book", "verify", SHOP, "--json"))
    transcript.passed(f"the book is verified: {entries} entries")
    transcript.blank_line()
    transcript.say(
        "These are the balances of all accounts. Each amount came from another account, so each currency "
        "adds up to 0."
    )
    run_and_show(transcript, deployment, "book", "show", SHOP)
    if any(sums.values()):
        raise Failure(f"the accounts do not add up to 0: {sums}")
    transcript.passed(" and ".join(f"{currency} adds up to 0" for currency in sorted(sums)))


def _read_book(said: str) -> tuple[int, dict[str, Decimal]]:
    """From the output of `book verify`: the number of entries, and each currency's sum over all accounts."""
    try:
        verified = json.loads(said)
        book = verified["books"][0]
        sums: dict[str, Decimal] = {}
        for account, balance in book["balances"].items():
            currency = account.rpartition(":")[2]
            sums[currency] = sums.get(currency, Decimal()) + Decimal(balance)
        if verified["ok"] is not True:
            raise Failure(f"the book is not as it should be: {said}")
        return book["entries"], sums
    except (ValueError, KeyError, IndexError, InvalidOperation) as error:
        raise Failure(f"'book verify' did not print what was expected: {said}") from error
