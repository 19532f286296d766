"""What all handlers do with a callback, without a framework."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from merchant_wallet_client.callbacks import (
    MAX_CALLBACK_BYTES,
    TOLERANCE_S,
    AnyCallback,
    verify_callback,
)
from merchant_wallet_client.errors import BadCallbackError
from merchant_wallet_client.signing import HMAC, Method


class Answer(NamedTuple):
    """What the service is answered."""

    http_status: int
    text: str


ACCEPTED: Final = Answer(200, "success")
TOO_LARGE: Final = Answer(413, f"a callback has at most {MAX_CALLBACK_BYTES} bytes\n")
ONLY_POST: Final = Answer(405, "callbacks come with POST\n")


def store_now(store: Callable[[AnyCallback], object], callback: AnyCallback) -> None:
    """Store a callback. Raises TypeError for an async `store`: what it returns has stored nothing yet."""
    result = store(callback)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("store is async, and this view can't await it: give a function that stores at once")


@dataclass(frozen=True)
class Check:
    """How callbacks are checked. The secrets are in no repr."""

    secret: str | Sequence[str]
    sign_method: Method = HMAC
    tolerance_s: float = TOLERANCE_S

    def __repr__(self) -> str:
        return f"Check({self.sign_method}, {self.tolerance_s:g} s)"

    def read(self, body: bytes, headers: Mapping[str, str]) -> AnyCallback | Answer:
        """The callback, or the answer to what is none."""
        if len(body) > MAX_CALLBACK_BYTES:
            return TOO_LARGE
        try:
            return verify_callback(
                body, headers, self.secret, sign_method=self.sign_method, tolerance_s=self.tolerance_s
            )
        except BadCallbackError as error:
            return Answer(400, f"{error.reason}\n")
