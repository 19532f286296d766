"""One call after the other on the stage: prepared, sent, shown, and checked against what was expected.

Rules: every call says beforehand which code it expects, and the signature of every answer that has one is
checked; the first surprise ends the story with a Failure.
"""

import time
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final

import httpx

from merchant_wallet.cli.demo.backstage import Failure
from merchant_wallet.cli.demo.client import Answer, Client, Request
from merchant_wallet.cli.demo.stage import Stage

SUCCESS: Final = "200"
POLL_INTERVAL_S: Final = 0.1
PAYOUT_TIMEOUT_S: Final = 60.0
STATUS_WORDS: Final = {"0": "accepted, the amount is held", "1": "taken up by the payer", "2": "paid"}


class Acts:
    """What a story shows of one merchant's calls; its acts are numbered from 1."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self.stage = stage
        self.client = client
        self._number = 0

    def act(self, operation: str, title: str, text: str, **values: object) -> Answer:
        """One of the operations, in full. Raises Failure."""
        self.open(operation, title, text)
        request = self.client.prepare(operation, **values)
        self.stage.request(request, self.client.base_url)
        answer = self.send(request, SUCCESS)
        self.stage.answer(answer)
        self.stage.verdict("200, and the answer's signature is the service's")
        return answer

    def open(self, operation: str, title: str, text: str) -> None:
        """The next act's heading."""
        self._number += 1
        self.stage.chapter(f"{self._number}. {title}", operation)
        self.stage.say(text)

    def show(self, text: str, request: Request, expected: str = SUCCESS) -> Answer:
        """A call whose string to sign is of no interest. Raises Failure."""
        self.stage.gap()
        self.stage.say(text)
        self.stage.request(request, self.client.base_url, signed=False)
        answer = self.send(request, expected)
        self.stage.answer(answer)
        self.stage.verdict("200, signature checked" if expected == SUCCESS else f"refused with {expected}")
        return answer

    def send(self, request: Request, expected: str = SUCCESS) -> Answer:
        """Send, and insist on the code and, where there is one, on the signature. Raises Failure."""
        try:
            answer = self.client.send(request)
        except (httpx.HTTPError, ValueError) as error:
            raise Failure(f"no answer to {request.path}: {error}") from error
        if answer.code != expected:
            raise Failure(f"{request.path} answered {answer.code} ({answer.msg}) instead of {expected}")
        if answer.code == SUCCESS and not answer.is_genuine(self.client.secret, request):
            raise Failure(f"the signature of the answer to {request.path} is wrong: {answer.body}")
        return answer

    def wait_until(
        self, what: str, holds: Callable[[Answer], bool], operation: str, **values: object
    ) -> tuple[Request, Answer]:
        """Make a call again and again until its answer is as wanted; that one is shown by whoever asked.

        Raises Failure with `what` was waited for in vain.
        """
        ends_s = time.monotonic() + PAYOUT_TIMEOUT_S
        while True:
            request = self.client.prepare(operation, **values)
            answer = self.send(request)
            if holds(answer):
                return request, answer
            if time.monotonic() > ends_s:
                raise Failure(f"{what} did not come within {PAYOUT_TIMEOUT_S:g} s: {answer.body}")
            time.sleep(POLL_INTERVAL_S)

    def follow_order(self, created: Answer, mc_order_id: str) -> Answer:
        """Query an order until it is paid; each status is told when it is first seen. Raises Failure."""
        began_s, seen = time.monotonic(), [str(created.data["txnStatus"])]
        self.stage.verdict(f"status {seen[0]}, {STATUS_WORDS.get(seen[0])}: as the creation said")

        def look(answer: Answer) -> bool:
            status = str(answer.data["txnStatus"])
            if status not in STATUS_WORDS:
                raise Failure(f"the withdrawal took a wrong turn, to status {status}")
            if status != seen[-1] and status != "2":
                seen.append(status)
                took_s = time.monotonic() - began_s
                self.stage.verdict(f"status {status}, {STATUS_WORDS[status]}: seen after {took_s:.1f} s")
            return status == "2"

        order = {"orderId": int(created.data["orderId"]), "mcOrderId": mc_order_id}
        request, answer = self.wait_until("the end of the withdrawal", look, "queryOrder", **order)
        self.stage.request(request, self.client.base_url)
        self.stage.answer(answer)
        took_s = time.monotonic() - began_s
        self.stage.verdict(f"status 2, {STATUS_WORDS['2']}: seen after {took_s:.1f} s")
        self.stage.verdict(f"{' → '.join([*seen, '2'])}, and the signature of every answer is the service's")
        return answer


def read_amount(answer: Answer, name: str) -> Decimal | None:
    """One of an answer's amounts; None when there is none."""
    try:
        return Decimal(str(answer.data.get(name)))
    except InvalidOperation:
        return None
