"""Wraps a signer and counts refused signatures, for the metrics of the worker side."""

from collections.abc import Mapping

from merchant_wallet.chains.signer import SeededSigner, SigningRefused, SigningRequest


class CountingSigner:
    """See `chains.signer.SeededSigner`. `refusals` only grows."""

    def __init__(self, signer: SeededSigner) -> None:
        self._signer = signer
        self.refusals = 0

    async def wallets(self) -> Mapping[str, bytes]:
        """Each chain's hot wallet."""
        return await self._signer.wallets()

    async def account(self, account_no: int) -> Mapping[str, str]:
        """The extended public keys of an account of the seed."""
        return await self._signer.account(account_no)

    async def sign(self, request: SigningRequest) -> bytes:
        """The signature. Raises SigningRefused, SignerAway."""
        try:
            return await self._signer.sign(request)
        except SigningRefused:
            self.refusals += 1
            raise
