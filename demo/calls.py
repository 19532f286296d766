"""The calls of a story: each is prepared, sent, shown, and compared with what was expected.

Rules: every call names the code that it expects, and every signature is checked. The first difference ends
the story with a Failure.
"""

import time
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

from demo.deployment import Failure
from demo.transcript import Transcript
from merchant_wallet_client import Answer, MerchantWallet, SignedRequest, WalletError

SUCCESS: Final = 200
POLL_INTERVAL_S: Final = 0.1
PAYOUT_TIMEOUT_S: Final = 60.0
STATUS_WORDS: Final = {"0": "accepted, the amount is held", "1": "taken up by the payer", "2": "paid"}


class MerchantCalls:
    """A merchant's calls in a story, in chapters numbered from 1."""

    def __init__(self, transcript: Transcript, client: MerchantWallet) -> None:
        self.transcript = transcript
        self.client = client
        self._number = 0

    def call(self, operation: str, title: str, text: str, **values: object) -> Answer:
        """Call an operation and show everything. Raises Failure."""
        self.open(operation, title, text)
        request = self.client.prepare(operation, values)
        self.transcript.request(request, self.client.base_url)
        answer = self.send(request, SUCCESS)
        self.transcript.answer(answer)
        self.transcript.passed("200, and the answer's signature is the service's")
        return answer

    def open(self, operation: str, title: str, text: str) -> None:
        """Print the heading of the next chapter."""
        self._number += 1
        self.transcript.chapter(f"{self._number}. {title}", operation)
        self.transcript.say(text)

    def show(self, text: str, request: SignedRequest, expected: int = SUCCESS) -> Answer:
        """A call without its string to sign. Raises Failure."""
        self.transcript.blank_line()
        self.transcript.say(text)
        self.transcript.request(request, self.client.base_url, signed=False)
        answer = self.send(request, expected)
        self.transcript.answer(answer)
        self.transcript.passed(
            "200, signature checked" if expected == SUCCESS else f"refused with {expected}"
        )
        return answer

    def send(self, request: SignedRequest, expected: int = SUCCESS) -> Answer:
        """Send a request and check the code. The client checks the signature. Raises Failure."""
        try:
            answer = self.client.send(request)
        except WalletError as error:
            raise Failure(f"{request.path}: {error}") from error
        if answer.code != expected:
            raise Failure(f"{request.path} answered {answer.code} ({answer.msg}) instead of {expected}")
        return answer

    def wait_until(
        self, what: str, holds: Callable[[Answer], bool], operation: str, **values: object
    ) -> tuple[SignedRequest, Answer]:
        """Repeat a call until its answer `holds`. The caller shows that answer.

        Raises Failure, with `what`, if that does not happen in time.
        """
        ends_s = time.monotonic() + PAYOUT_TIMEOUT_S
        while True:
            request = self.client.prepare(operation, values)
            answer = self.send(request)
            if holds(answer):
                return request, answer
            if time.monotonic() > ends_s:
                raise Failure(f"{what} did not come within {PAYOUT_TIMEOUT_S:g} s: {answer.body}")
            time.sleep(POLL_INTERVAL_S)

    def follow_order(self, created: Answer, mc_order_id: str) -> Answer:
        """Query an order until it is paid, and show each new status. Raises Failure."""
        began_s, seen = time.monotonic(), [str(created.data["txnStatus"])]
        self.transcript.passed(f"status {seen[0]}, {STATUS_WORDS.get(seen[0])}: as the creation said")

        def look(answer: Answer) -> bool:
            status = str(answer.data["txnStatus"])
            if status not in STATUS_WORDS:
                raise Failure(f"the withdrawal took a wrong turn, to status {status}")
            if status != seen[-1] and status != "2":
                seen.append(status)
                took_s = time.monotonic() - began_s
                self.transcript.passed(f"status {status}, {STATUS_WORDS[status]}: seen after {took_s:.1f} s")
            return status == "2"

        order = {"orderId": int(created.data["orderId"]), "mcOrderId": mc_order_id}
        request, answer = self.wait_until("the end of the withdrawal", look, "queryOrder", **order)
        self.transcript.request(request, self.client.base_url)
        self.transcript.answer(answer)
        took_s = time.monotonic() - began_s
        self.transcript.passed(f"status 2, {STATUS_WORDS['2']}: seen after {took_s:.1f} s")
        self.transcript.passed(
            f"{' → '.join([*seen, '2'])}, and the signature of every answer is the service's"
        )
        return answer


def read_amount(answer: Answer, name: str) -> Decimal | None:
    """One of an answer's amounts, or None."""
    try:
        return Decimal(str(answer.data.get(name)))
    except InvalidOperation:
        return None
