"""The recipients that behave in a special way in the sandbox. Pure.

Rules:
- A recipient is 20 bytes, the same on all chains. The first 17 are zeros, so nobody has such an address.
- The last digit of `…57A7N` and of `…5C4EEN` is the withdrawal status in which an order to it ends or rests.
- The chain knows how transfers end. What comes before a transfer, or after it failed, is up to `sandbox`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from merchant_wallet.base.addresses import SANDBOX_FAILING, SANDBOX_SLOW
from merchant_wallet.base.units import DAY_MS

PAID: Final = "paid"
FAILED: Final = "failed"
NEVER_MS: Final = 10 * 365 * DAY_MS
"""A transfer that takes this long becomes final only when a test says so."""


class Behaviour(NamedTuple):
    """How transfers to a recipient end, and how long they take (None: as configured)."""

    confirm_ms: int | None
    verdict: str


class Recipient(NamedTuple):
    """A special recipient: the status that an order to it comes to, and what happens, as a sentence."""

    address: bytes
    status: int
    effect: str
    behaviour: Behaviour


USUAL: Final = Behaviour(None, PAID)
FAILS: Final = Behaviour(None, FAILED)


def _make_address(status: int) -> bytes:
    return bytes.fromhex(f"{0x57A70 + status:040x}")


SCREENED_HOLD, SCREENED_REFUSE = (bytes.fromhex(f"{number:040x}") for number in (0x5C4EE1, 0x5C4EE6))
"""Their transfers are usual. Screening in the sandbox holds or refuses orders to them, and deposits from
them.
"""
WAITING, PROCESSING, SETTLED, FAILED_HELD, CANCELLED, EXPIRED, REFUNDED = map(_make_address, range(7))

RECIPIENTS: Final = (
    Recipient(
        WAITING,
        0,
        "the order waits for approval, whatever its amount, and then for its transfer: `advance` leads it on",
        Behaviour(NEVER_MS, PAID),
    ),
    Recipient(
        PROCESSING,
        1,
        "the transfer never becomes final: the order stays in 1 until `advance` or `fail`",
        Behaviour(NEVER_MS, PAID),
    ),
    Recipient(SETTLED, 2, "the order is paid, like one to any other address", USUAL),
    Recipient(
        FAILED_HELD,
        3,
        "the transfer fails for good, and the order stays in 3 until `advance` lets it be refunded",
        FAILS,
    ),
    Recipient(CANCELLED, 4, "the order is cancelled at once; its answer still says 0", USUAL),
    Recipient(EXPIRED, 5, "nobody approves the order: it expires after about a second", USUAL),
    Recipient(
        REFUNDED, 6, "the transfer fails for good: the order goes 1, 3, 6 and the money is back", FAILS
    ),
    Recipient(SANDBOX_FAILING, 6, "the same", FAILS),
    Recipient(SANDBOX_SLOW, 2, "the transfer takes a minute to become final", Behaviour(60_000, PAID)),
    Recipient(
        SCREENED_HOLD,
        1,
        "screening holds the order, and nothing is signed: it stays in 1 until `advance` or `fail`",
        USUAL,
    ),
    Recipient(
        SCREENED_REFUSE,
        6,
        "screening refuses the order before anything is signed: it goes 1, 3, 6 and the money is back",
        USUAL,
    ),
)
"""All special recipients, in the order of the documentation."""

BEHAVIOURS: Final[Mapping[bytes, Behaviour]] = {each.address: each.behaviour for each in RECIPIENTS}
