"""The record of a signer's signatures, in memory and in a file, and the signer's own limits.

Rules:
- A payment is on disk before its signature is given out.
- The file is only appended to, under its lock: one JSON line for each signature. Several processes on one
  keystore share it. Each reads the others' lines before it judges.
- An incomplete last line belongs to a signature that was never given out. It is cut off.
- A changed or truncated file stops the signer.
- An order is remembered for ever, in about 200 bytes. It is paid to one recipient, once. Another signature
  for it must have the same nonce (EVM), or come after the earlier one has expired (TRON).
- A transfer to a cold wallet is remembered in the same way, but has no limit: it stays the platform's money.
- Only an operator can declare that nothing signed so far will count.
"""

import fcntl
import hashlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.money import format_units
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.chains.signer import SigningRefused

_MAX_READ_BYTES: Final = 1 << 20
_RELEASED: Final = b""


class Release(msgspec.Struct, frozen=True, rename="camel", tag_field="kind", tag="release"):
    """An operator's declaration that nothing signed for an order can count. It may be signed again."""

    at_ms: int
    payout_id: int
    actor: str
    reason: str


class SignedPayment(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="kind", tag="payment"
):
    """One signature for an order, or with `is_cold` for a transfer to a cold wallet. `digest` is what was
    signed.
    """

    at_ms: int
    payout_id: int
    chain: str
    recipient: bytes
    units: int
    digest: bytes
    nonce: int | None = msgspec.field(default=None, name="sequence")
    expires_ms: int | None = None
    is_cold: bool = False

    @property
    def key(self) -> int:
        """Orders and cold transfers are numbered apart. A cold transfer's number is negative here."""
        return -self.payout_id if self.is_cold else self.payout_id

    @property
    def fixed_terms_digest(self) -> bytes:
        """A 16-byte digest of what must never change about an order."""
        text = f"{self.chain};{self.recipient.hex()};{self.units}"
        return hashlib.sha256(text.encode()).digest()[:16]


class SignedOrders:
    """The signatures so far, as needed to judge the next payment. Pure: the time is a parameter."""

    def __init__(self) -> None:
        self._orders: dict[int, tuple[bytes, bytes, int | None, int | None]] = {}
        self._hour: deque[tuple[int, int]] = deque()
        self._hour_units = 0

    def judge(self, payment: SignedPayment, payment_limit_units: int, hour_limit_units: int) -> bool:
        """True if the payment is new and may be signed. False if the same bytes were signed before.

        Raises SigningRefused.
        """
        known = self._orders.get(payment.key)
        if known is not None:
            fixed_terms, digest, nonce, expires_ms = known
            if fixed_terms != payment.fixed_terms_digest:
                raise SigningRefused("this order was signed for another recipient, amount or chain before")
            if digest == payment.digest:
                return False
            if digest != _RELEASED:
                self._judge_again(payment, nonce, expires_ms)
        if payment.is_cold:
            return True
        if payment.units > payment_limit_units:
            raise SigningRefused(
                f"the signer pays at most {format_units(payment_limit_units)} USDT at once, and this has"
                f" {format_units(payment.units)}"
            )
        self._forget_older_than_hour(payment.at_ms)
        if self._counts(payment) and self._hour_units + payment.units > hour_limit_units:
            signed = format_units(self._hour_units)
            raise SigningRefused(
                f"the signer pays at most {format_units(hour_limit_units)} USDT an hour, {signed} are signed,"
                f" and this has {format_units(payment.units)}"
            )
        return True

    def release(self, payout_id: int) -> None:
        """Let an order be signed again, with the same recipient and amount.

        Raises SigningRefused if it was never signed.
        """
        known = self._orders.get(payout_id)
        if known is None:
            raise SigningRefused(f"nothing was ever signed for order {payout_id}")
        self._orders[payout_id] = (known[0], _RELEASED, None, None)

    def note(self, payment: SignedPayment) -> None:
        """Record a signed payment."""
        self._forget_older_than_hour(payment.at_ms)
        if self._counts(payment) and not payment.is_cold:
            self._hour.append((payment.at_ms, payment.units))
            self._hour_units += payment.units
        entry = (payment.fixed_terms_digest, payment.digest, payment.nonce, payment.expires_ms)
        self._orders[payment.key] = entry

    def _judge_again(self, payment: SignedPayment, nonce: int | None, expires_ms: int | None) -> None:
        if nonce != payment.nonce:
            raise SigningRefused(
                f"this order was signed with nonce {nonce} before; "
                f"with {payment.nonce} it could be paid twice"
            )
        if expires_ms is not None and payment.at_ms <= expires_ms:
            raise SigningRefused("this order was signed before, and that signature has not expired yet")

    def _counts(self, payment: SignedPayment) -> bool:
        """Whether a payment adds to the hour's sum. A replacement at the same nonce does not."""
        known = self._orders.get(payment.key)
        return payment.nonce is None or known is None or known[1] == _RELEASED

    def _forget_older_than_hour(self, now_ms: int) -> None:
        """Drop what was signed more than an hour ago. Signatures from the future (a wrong clock) count from
        now.
        """
        if self._hour and self._hour[-1][0] > now_ms:
            self._hour = deque((min(at_ms, now_ms), units) for at_ms, units in self._hour)
        while self._hour and self._hour[0][0] <= now_ms - HOUR_MS:
            self._hour_units -= self._hour.popleft()[1]


class SigningJournal:
    """The file and its content in memory. Not thread-safe."""

    def __init__(self, path: Path, payment_limit_units: int, hour_limit_units: int) -> None:
        self._path = path
        self._limits = (payment_limit_units, hour_limit_units)
        self._signed_orders = SignedOrders()
        self._read_to = 0
        self._inode: int | None = None

    def admit(self, payment: SignedPayment) -> None:
        """Judge a payment and record it. Raises SigningRefused. Raises OSError if it can't be written."""
        with self._locked() as descriptor:
            if self._signed_orders.judge(payment, *self._limits):
                self._append(descriptor, payment)

    def release(self, release: Release) -> None:
        """Record an operator's declaration. It holds from the next payment on. Raises as `admit`."""
        with self._locked() as descriptor:
            self._signed_orders.release(release.payout_id)
            self._append(descriptor, release)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, read to its end and locked against other processes."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._catch_up(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _catch_up(self, descriptor: int) -> None:
        """Read what this or another process has added since the last call."""
        found = os.fstat(descriptor)
        if self._inode not in (None, found.st_ino) or found.st_size < self._read_to:
            raise SigningRefused(f"the record of what was signed, {self._path}, was replaced or cut")
        self._inode = found.st_ino
        rest = b""
        while chunk := os.pread(descriptor, _MAX_READ_BYTES, self._read_to + len(rest)):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._note(self._parse(line))
                self._read_to += len(line) + 1
        if rest:
            os.ftruncate(descriptor, self._read_to)

    def _append(self, descriptor: int, entry: SignedPayment | Release) -> None:
        line = msgspec.json.encode(entry) + b"\n"
        written = os.write(descriptor, line)
        if written != len(line):
            raise OSError(f"{self._path} takes no more")
        os.fsync(descriptor)
        self._note(entry)
        self._read_to += written

    def _note(self, entry: SignedPayment | Release) -> None:
        if isinstance(entry, SignedPayment):
            self._signed_orders.note(entry)
        else:
            self._signed_orders.release(entry.payout_id)

    def _parse(self, line: bytes) -> SignedPayment | Release:
        try:
            entry: SignedPayment | Release = msgspec.json.decode(line, type=SignedPayment | Release)
        except msgspec.DecodeError:
            raise SigningRefused(f"{self._path} was changed: byte {self._read_to} begins no entry") from None
        return entry
