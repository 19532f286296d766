"""A fake service for your own tests: `FakeWallet`.

It speaks the interface over HTTP on loopback, checks and makes signatures as the service does, and keeps its
book in memory. Tests can script refusals, lost answers and answers that are not signed with your secret.

Rules: it knows one merchant and no chain. Payouts end when a test says so (`finish_order`). A test of this
repository plays one story on it and on the real service, and compares every answer.
"""

from merchant_wallet_client.testing.fake import FakeWallet

__all__ = ["FakeWallet"]
