"""A shop's account, and its client: the same `MerchantWallet` that merchants use."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from demo.deployment import Failure
from merchant_wallet_client import MerchantWallet


@dataclass(frozen=True)
class Account:
    """What a merchant signs with, and what it checks callbacks with."""

    app_key: str
    secret: str
    callback_secret: str
    notify_url: str | None = None
    """Where the demo accepts the shop's callbacks."""

    @classmethod
    def read(cls, created: str) -> "Account":
        """From the output of `merchant create --json`. Raises Failure."""
        try:
            told = json.loads(created)
            return cls(told["appKey"], told["appSecret"], told["callbackSecret"])
        except (ValueError, KeyError) as error:
            raise Failure(f"'merchant create' did not print a key and secrets: {created}") from error

    @contextmanager
    def open_client(self, base_url: str) -> Iterator[MerchantWallet]:
        """The shop's client."""
        # Both programs are on this machine: the reader's proxy must not be used.
        with httpx.Client(trust_env=False) as http:
            yield MerchantWallet(base_url, self.app_key, self.secret, http=http)
