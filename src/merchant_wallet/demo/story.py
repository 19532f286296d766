"""The day of Lantern Tea, a shop, and Alice, its customer: eight operations, refusals, a book that adds up.

Rules: every call says beforehand which code it expects, and the signature of every answer that has one is
checked; the first surprise ends the story with a Failure. The amounts are few and round, so that a reader can
add them up.
"""

import json
import time
from decimal import Decimal, InvalidOperation
from typing import Final

import httpx

from merchant_wallet.demo.backstage import Backstage, Failure, spell
from merchant_wallet.demo.client import Answer, Client, Request, sign
from merchant_wallet.demo.stage import Stage

SHOP: Final = "Lantern Tea"
ALICE: Final = "alice"
SHOPS_OWN_WALLET: Final = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
WITHDRAWAL_ID: Final = "10001"
TEAPOT: Final = {"extUserId": ALICE, "currency": "KFB", "amount": "200", "mcOrderId": "teapot-1"}
NOTIFY_URL: Final = "https://lantern-tea.example/paid"
POLL_INTERVAL_S: Final = 0.05
PAYOUT_TIMEOUT_S: Final = 60.0
STATUS_WORDS: Final = {"0": "accepted, the amount is held", "1": "taken up by the payer", "2": "paid"}
CLOSING_BALANCES: Final = {"usdtBalance": Decimal(350), "kfbBalance": Decimal(1538)}
"""1000 − 400 − 250 USDT; 2840 − 1500 + 198 KFB."""

SUCCESS: Final = "200"
SIGNATURE_MISMATCH: Final = "40101"
NONCE_REPEATED: Final = "40103"
ORDER_ID_CONFLICT: Final = "40900"
BALANCE_INSUFFICIENT: Final = "42200"


def open_account(stage: Stage, backstage: Backstage) -> tuple[str, str]:
    """The operator's part: the shop, its fees, the rates, its opening funds. Gives its appKey and secret."""

    def run(*arguments: str) -> str:
        said = backstage.run(*arguments)
        stage.command(spell(arguments), said)
        return said

    stage.chapter("The operator opens an account")
    stage.say(
        f"{SHOP} becomes a merchant, fees and rates are set, and its own 1,000 USDT are booked in. Even that "
        "needs a reason, and an account that they come from."
    )
    created = run("merchant", "create", SHOP, "--json")
    run(
        "merchant",
        "set",
        SHOP,
        "--transfer-fee-rate",
        "0.01",
        "--withdraw-fee-rate",
        "0.005",
        "--withdraw-fee-min",
        "1",
    )
    run("rates", "set", "USDT:KFB", "7.10")
    run("rates", "set", "KFB:USDT", "0.14")
    run("book", "credit", SHOP, "USDT", "1000", "--reason", "opening funds")
    try:
        merchant = json.loads(created)
        return merchant["appKey"], merchant["appSecret"]
    except (ValueError, KeyError) as error:
        raise Failure(f"'merchant create' did not print a key and a secret: {created}") from error


class Day:
    """The shop's part: everything it does over HTTP."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self._stage = stage
        self._client = client
        self._number = 0
        self._teapot = ""

    def run(self) -> None:
        """From opening to closing."""
        self._trade()
        self._withdraw()
        self._err()
        self._close()

    def _trade(self) -> None:
        self._act("getMerchantBalance", "What is in the till?", "The 1,000 USDT that the operator booked in.")
        self._act(
            "exchange",
            "Wallets hold KFB",
            "So 400 USDT become 2,840 KFB, at 7.1. The optional order id makes a retry safe.",
            amount="400.00",
            sendCurrency="USDT",
            receiveCurrency="KFB",
            mcOrderId="exchange-1",
        )
        alice = self._act(
            "getMerchantCustomer",
            "Alice comes in",
            "She is new: the look-up opens her a wallet, with an address on either network.",
            extUserId=ALICE,
        )
        self._act(
            "transferFromMerchantToUser",
            "Alice hands in a voucher",
            "It is worth 1,500 KFB, which go to the address of her wallet.",
            currency="KFB",
            amount="1500",
            mcOrderId="voucher-1",
            address=str(alice.data["address"]),
        )
        price = "200 KFB; 1 % is the fee, 198 arrive."
        bought = self._act("transferFromUserToMerchant", "Alice buys a teapot", price, **TEAPOT)
        self._teapot = str(bought.data["transactionId"])

    def _withdraw(self) -> None:
        quote = (
            "250 USDT are to leave for a wallet of its own outside. 0.5 % are 1.25, above the least fee of 1."
        )
        self._act("getWithdrawFee", "What would a withdrawal cost?", quote, amount="250.00", currency="USDT")
        created = self._act(
            "createMerchantWithdrawOrder",
            "The shop withdraws",
            "The amount is held in the same commit as the order. Status 0 means that it is not paid yet.",
            amount="250.00",
            chainType="TRC20",
            currency="USDT",
            mcOrderId=WITHDRAWAL_ID,
            address=SHOPS_OWN_WALLET,
            notifyUrl=NOTIFY_URL,
        )
        self._follow_order(created)

    def _follow_order(self, created: Answer) -> None:
        """Query the order until it is paid; each status is shown when it is first seen."""
        self._open(
            "queryOrder", "Has it arrived?", "The shop asks until the sandbox's chain has made it final."
        )
        began_s = time.monotonic()
        seen = [str(created.data["txnStatus"])]
        self._stage.verdict(f"status {seen[0]}, {STATUS_WORDS.get(seen[0])}: as the creation said")
        while seen[-1] != "2":
            request = self._client.prepare(
                "queryOrder", orderId=int(created.data["orderId"]), mcOrderId=WITHDRAWAL_ID
            )
            answer = self._send(request, SUCCESS)
            status, took_s = str(answer.data["txnStatus"]), time.monotonic() - began_s
            if status not in STATUS_WORDS:
                raise Failure(f"the withdrawal took a wrong turn, to status {status}")
            if status == "2":
                self._stage.request(request, self._client.base_url)
                self._stage.answer(answer)
            if status != seen[-1]:
                seen.append(status)
                self._stage.verdict(f"status {status}, {STATUS_WORDS[status]}: seen after {took_s:.1f} s")
            elif took_s > PAYOUT_TIMEOUT_S:
                raise Failure(f"the withdrawal is still in status {status} after {PAYOUT_TIMEOUT_S:g} s")
            time.sleep(POLL_INTERVAL_S)
        self._stage.verdict(f"{' → '.join(seen)}, and the signature of every answer is the service's")

    def _err(self) -> None:
        self._stage.chapter("What the service does not fall for")
        once = self._client.prepare("getMerchantBalance")
        self._send(once, SUCCESS)
        self._show("A request that was overheard is sent again, byte for byte.", once, NONCE_REPEATED)

        fields = {
            **self._client.prepare(
                "exchange", amount="1.00", sendCurrency="KFB", receiveCurrency="USDT"
            ).fields
        }
        fields["sign"] = sign("a secret that is not the shop's", "/merchant/exchange", fields)
        forged = "Someone without the secret signs an exchange. A sandbox answers with what should be signed."
        self._show(forged, Request("/merchant/exchange", fields), SIGNATURE_MISMATCH)

        first = (
            "The shop lost the answer about the teapot and asks again: it gets it again, and Alice pays once."
        )
        again = self._show(first, self._client.prepare("transferFromUserToMerchant", **TEAPOT), SUCCESS)
        if again.data["transactionId"] != self._teapot:
            raise Failure("the repeated order has become a second transaction")
        self._stage.verdict(f"transaction {self._teapot}, as the first time")

        dearer = self._client.prepare("transferFromUserToMerchant", **{**TEAPOT, "amount": "300"})
        self._show("The same order id for another amount is a mistake.", dearer, ORDER_ID_CONFLICT)

        samovar = {**TEAPOT, "amount": "1300.000001", "mcOrderId": "samovar-1"}
        unpayable = self._client.prepare("transferFromUserToMerchant", **samovar)
        self._show("Alice has 1,300 KFB. One millionth more is too much.", unpayable, BALANCE_INSUFFICIENT)

    def _close(self) -> None:
        self._stage.chapter("The shop closes its books")
        sums = "By its own: 1000 − 400 − 250 = 350 USDT, and 2840 − 1500 + 198 = 1538 KFB. The service says:"
        balance = self._show(sums, self._client.prepare("getMerchantBalance"), SUCCESS)
        if {name: _read_amount(balance, name) for name in CLOSING_BALANCES} != CLOSING_BALANCES:
            raise Failure("the shop's sums and the service's balances differ")
        self._stage.verdict("to the last millionth")

    def _act(self, operation: str, title: str, text: str, **values: object) -> Answer:
        """One of the eight operations, in full."""
        self._open(operation, title, text)
        request = self._client.prepare(operation, **values)
        self._stage.request(request, self._client.base_url)
        answer = self._send(request, SUCCESS)
        self._stage.answer(answer)
        self._stage.verdict("200, and the answer's signature is the service's")
        return answer

    def _open(self, operation: str, title: str, text: str) -> None:
        self._number += 1
        self._stage.chapter(f"{self._number}. {title}", operation)
        self._stage.say(text)

    def _show(self, text: str, request: Request, expected: str) -> Answer:
        """A call whose string to sign is of no interest."""
        self._stage.gap()
        self._stage.say(text)
        self._stage.request(request, self._client.base_url, signed=False)
        answer = self._send(request, expected)
        self._stage.answer(answer)
        self._stage.verdict("200, signature checked" if expected == SUCCESS else f"refused with {expected}")
        return answer

    def _send(self, request: Request, expected: str) -> Answer:
        """Send, and insist on the code and, where there is one, on the signature. Raises Failure."""
        try:
            answer = self._client.send(request)
        except (httpx.HTTPError, ValueError) as error:
            raise Failure(f"no answer to {request.path}: {error}") from error
        if answer.code != expected:
            raise Failure(f"{request.path} answered {answer.code} ({answer.msg}) instead of {expected}")
        if answer.code == SUCCESS and not answer.is_genuine(self._client.secret, request):
            raise Failure(f"the signature of the answer to {request.path} is wrong: {answer.body}")
        return answer


def check_book(stage: Stage, backstage: Backstage) -> None:
    """The operator's closing: the journal is replayed, the accounts are shown. Raises Failure."""
    stage.chapter("The operator checks the book")
    stage.say("The journal is replayed from its first entry: hashes, balances, orders.")
    verify = ("book", "verify", SHOP, "--json")
    said = backstage.run(*verify)
    stage.command(spell(verify), said)
    entries, sums = _read_book(said)
    stage.verdict(f"the book is verified: {entries} entries")
    stage.gap()
    stage.say(
        "And where everything is now. What an account has came from another, so each currency sums to 0."
    )
    show = ("book", "show", SHOP)
    stage.command(spell(show), backstage.run(*show))
    if any(sums.values()):
        raise Failure(f"the accounts do not add up to 0: {sums}")
    stage.verdict(" and ".join(f"{currency} adds up to 0" for currency in sorted(sums)))


def _read_book(said: str) -> tuple[int, dict[str, Decimal]]:
    """From what `book verify` printed: how many entries there are, and each currency's sum over accounts."""
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


def _read_amount(answer: Answer, name: str) -> Decimal | None:
    try:
        return Decimal(str(answer.data.get(name)))
    except InvalidOperation:
        return None
