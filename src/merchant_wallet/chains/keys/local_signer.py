"""The signer that holds the keys itself, in the process that opened the keystore.

Rules:
- It signs only bytes that `signing_rules` has checked.
- An order's signature leaves it only after the journal has written it to disk.
- It signs in threads. The journal admits one payment at a time.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping

import structlog
from coincurve import PrivateKey

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.base.chains import CHAINS
from merchant_wallet.base.clock import now_ms
from merchant_wallet.chains.keys.keystore import JOURNAL, Keystore
from merchant_wallet.chains.keys.signing_journal import SignedPayment, SigningJournal
from merchant_wallet.chains.keys.signing_rules import FROM_DEPOSIT, ParsedRequest, SigningRules, read_request
from merchant_wallet.chains.signer import SignerAway, SigningRefused, SigningRequest

log = structlog.get_logger("signer")


class LocalSigner:
    """A `Signer` with an open keystore. It records its signatures beside the keys."""

    def __init__(self, keystore: Keystore, rules: SigningRules, clock: Callable[[], int] = now_ms) -> None:
        self._keystore = keystore
        self._rules = rules
        self._clock = clock
        self._journal = SigningJournal(
            keystore.folder / JOURNAL, rules.payment_limit_units, rules.hour_limit_units
        )
        self._lock = threading.Lock()

    async def wallets(self) -> Mapping[str, bytes]:
        """The hot wallet of each chain with a key and a rule."""
        wallets = self._keystore.wallets()
        names = {chain: CHAINS[chain].family.key_name for chain in self._rules.chains}
        return {chain: wallets[name] for chain, name in names.items() if name in wallets}

    async def account(self, account_no: int) -> Mapping[str, str]:
        """The extended public keys of an account. Empty without a seed."""
        return self._keystore.account(account_no)

    async def sign(self, request: SigningRequest) -> bytes:
        """The signature r, s, v, 65 bytes. Raises SigningRefused, or SignerAway if it can't be recorded."""
        try:
            signature = await asyncio.to_thread(self._sign, request)
        except SigningRefused as refused:
            log.warning(
                "refused to sign", purpose=request.purpose, payout=request.payout_id, cause=str(refused)
            )
            raise
        except OSError as error:
            log.error("what is signed can't be recorded", cause=str(error))
            raise SignerAway(f"the signer can't record what it signs: {error.strerror or error}") from error
        log.info(
            "signed",
            purpose=request.purpose,
            chain=request.chain,
            payout=request.payout_id,
            amount_units=request.transfer.amount_units,
        )
        return signature

    def _sign(self, request: SigningRequest) -> bytes:
        limits = self._rules.chains.get(request.chain)
        hot_key = self._keystore.hot_key(request.chain)
        if limits is None or hot_key is None:
            raise SigningRefused(f"this signer has no key for {request.chain}")
        deposit_key = self._deposit_key(request)
        deposit = None if deposit_key is None else _address_of(deposit_key)
        parsed = read_request(request, limits, _address_of(hot_key), deposit)
        if request.purpose in ("payout", "cold"):
            with self._lock:
                self._journal.admit(_payment(request, parsed, self._clock()))
        spends_deposit = request.purpose in FROM_DEPOSIT
        key = deposit_key if spends_deposit and deposit_key is not None else hot_key
        return key.sign_recoverable(parsed.digest, hasher=None)

    def _deposit_key(self, request: SigningRequest) -> PrivateKey | None:
        if request.source is None:
            return None
        key = self._keystore.deposit_key(request.chain, request.source)
        if key is None:
            raise SigningRefused("this signer has no key for that deposit address")
        return key


def _payment(request: SigningRequest, parsed: ParsedRequest, at_ms: int) -> SignedPayment:
    transfer = request.transfer
    return SignedPayment(
        at_ms=at_ms,
        payout_id=request.payout_id,
        chain=request.chain,
        recipient=transfer.recipient,
        units=transfer.amount_units,
        digest=parsed.digest,
        nonce=parsed.nonce,
        expires_ms=parsed.expires_ms,
        is_cold=request.purpose == "cold",
    )


def _address_of(key: PrivateKey) -> bytes:
    return keccak256(key.public_key.format(compressed=False)[1:])[12:]
