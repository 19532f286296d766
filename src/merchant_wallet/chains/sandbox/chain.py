"""Simulated chains: every transfer becomes final by itself. Some `recipients` behave differently.

Rules:
- Nothing is random: the same payout and seed give the same bytes and hash on every machine.
- The "signature" is an HMAC-SHA256 with a key from the seed. It proves that the service made the bytes. It is
  no chain's signature, so the bytes are worth nothing elsewhere.
- The hash has the form of the simulated chain: keccak-256 with 0x on EVM chains, SHA-256 in plain hex on
  TRON.
- A `Ledger` keeps the accepted transfers. Until a transfer is final, a test may change how and when it ends.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.base.chains import is_evm
from merchant_wallet.chains.protocol import (
    FinalRecord,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.sandbox.recipients import BEHAVIOURS, FAILED, USUAL

FAILING_CAUSE: Final = "the sandbox lets this transfer fail"

ENDLESS_UNITS: Final = 10**18
"""The sandbox's hot wallet always holds this much: more than anybody can order."""

_MAC_BYTES: Final = 32


SOON_MS: Final = 5_000
"""Transfers that become final sooner need no further look before."""
LOOK_MS: Final = 500
LOOK_PART: Final = 8
"""A transfer that takes longer is looked at after this part of its age: a test may end it at any moment."""


class AcceptedTransfer(msgspec.Struct, frozen=True, gc=False):
    """A transfer that a sandbox chain has accepted. Its verdict holds from `final_ms` on."""

    tx_hash: str
    transfer: Transfer
    accepted_ms: int
    final_ms: int
    verdict: str


class Ledger(Protocol):
    """Stores the transfers that the sandbox's chains accepted."""

    async def accept(self, accepted: AcceptedTransfer) -> None:
        """Store a transfer. A known hash is not changed."""

    async def find(self, chain: str, tx_hash: str) -> AcceptedTransfer | None:
        """The transfer with this hash on this chain."""


class SandboxChain:
    """A chain whose state is in a `Ledger` (see `protocol.Chain`)."""

    def __init__(
        self, name: str, ledger: Ledger, *, seed: bytes, confirm_ms: int, clock: Callable[[], int]
    ) -> None:
        self._name = name
        self._ledger = ledger
        self._key = hmac.digest(seed, f"sandbox chain {name}".encode(), "sha256")
        self._confirm_ms = confirm_ms
        self._clock = clock

    @property
    def wallet(self) -> bytes:
        """Twenty bytes of this sandbox. They belong to no key."""
        return keccak256(self._key)[-20:]

    @property
    def has_nonces(self) -> bool:
        """False."""
        return False

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """Raises ValueError: there are no nonces here."""
        raise ValueError(f"the sandbox's {self._name} has no nonces")

    async def funds(self) -> int:
        """More than anybody can order."""
        return ENDLESS_UNITS

    async def check_payable(self, transfer: Transfer) -> None:
        """Everything can be paid here. Raises ValueError for another chain's transfer."""
        if transfer.chain != self._name:
            raise ValueError(f"a payout on {transfer.chain} can't be made on {self._name}")

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """The only possible bytes of this payout.

        Raises ValueError for another chain's payout, and for a signed payout: nothing expires here.
        """
        transfer = payout.transfer
        await self.check_payable(transfer)
        if earlier:
            raise ValueError(
                f"payout {payout.payout_id} has been signed, and the sandbox's bytes never expire"
            )
        what = (self._name, transfer.token, payout.payout_id, transfer.recipient.hex(), transfer.amount_units)
        body = ";".join(map(str, what)).encode()
        raw = self._mac(body) + body
        return SignedTransfer(raw, self._hash(raw))

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Raises ValueError: there are no nonces here."""
        raise ValueError(f"the sandbox's {self._name} has no nonces")

    async def broadcast(self, raw: bytes) -> None:
        """Accept the bytes. The same bytes again change nothing.

        Raises ValueError for bytes that are not our own.
        """
        transfer = self._read(raw)
        behaviour = BEHAVIOURS.get(transfer.recipient, USUAL)
        confirm_ms = self._confirm_ms if behaviour.confirm_ms is None else behaviour.confirm_ms
        now_ms = self._clock()
        accepted = AcceptedTransfer(self._hash(raw), transfer, now_ms, now_ms + confirm_ms, behaviour.verdict)
        await self._ledger.accept(accepted)

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """Pending until the transfer is final. Then the verdict of the recipient's behaviour."""
        left_ms: int | None = None
        for one in signed:
            accepted = await self._ledger.find(self._name, one.tx_hash)
            if accepted is None:
                continue
            now_ms = self._clock()
            left_ms = accepted.final_ms - now_ms
            if left_ms <= 0:
                return _verdict_on(accepted)
            if left_ms > SOON_MS:
                left_ms = max(LOOK_MS, (now_ms - accepted.accepted_ms) // LOOK_PART)
        return Pending(left_ms)

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")

    def _hash(self, raw: bytes) -> str:
        return "0x" + keccak256(raw).hex() if is_evm(self._name) else hashlib.sha256(raw).hexdigest()

    def _read(self, raw: bytes) -> Transfer:
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(body)):
            raise ValueError("these bytes were not signed by this sandbox")
        chain, token, _, recipient, amount_units = body.decode().split(";")
        return Transfer(chain, token, bytes.fromhex(recipient), int(amount_units))


def _verdict_on(accepted: AcceptedTransfer) -> Verdict:
    if accepted.verdict == FAILED:
        return ProvenUnpaid(FAILING_CAUSE)
    return FinalRecord(accepted.transfer, accepted.tx_hash)
