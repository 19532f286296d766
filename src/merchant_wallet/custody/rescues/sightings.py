"""What a transaction moved, or what an address holds, on the chains of the settings, and whose it is.

Rules:
- It is only read, when a person asks: from the first node of each chain that answers, at most `MAX_MOVED`
  transfers, those to us first. Nothing is decided from it, and no book changes.
- An address of ours is named with its merchant and sub-user. What a token's contract says of itself is shown
  as its own words. One that fails when it is asked has none, and hides nothing else.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from merchant_wallet.base.addresses import format_address, parse_wallet_address
from merchant_wallet.base.chains import CHAINS, COINS, Family, is_evm
from merchant_wallet.base.counted import count_of
from merchant_wallet.base.invisible_text import drop_invisible
from merchant_wallet.base.setting_types import show_coins
from merchant_wallet.chains.foreign import Moved, SeenTransaction, TokenWords
from merchant_wallet.chains.protocol import Block, ChainAway, ChainDisagrees
from merchant_wallet.chains.transport import NodeFailed, NodeRefused
from merchant_wallet.custody.rescues import store
from merchant_wallet.custody.rescues.store import Connection
from merchant_wallet.custody.rescues.two_person_changes import FindOwner
from merchant_wallet.merchants import own_addresses
from merchant_wallet.merchants.own_addresses import Own

MAX_MOVED: Final = 20
"""Transfers of one transaction that are described."""
LIMIT_S: Final = 20.0
"""A chain that does not answer within this time is away."""
_HASH_DIGITS: Final = 64
_OUR_TOKEN: Final = "USDT"

State = Literal["final", "unconfirmed", "failed", "unknown", "away", "read"]
"""What a chain said: of a transaction, or `read` of an address."""


class NotAsked(ValueError):
    """The text is neither the hash of a transaction nor an address."""


class LookedAt(Protocol):
    """What is asked of a chain. Everything raises ChainAway."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back."""

    async def look_up(self, tx_hash: str) -> SeenTransaction | None:
        """What a transaction moved."""

    async def read_words(self, contract: bytes) -> TokenWords:
        """What a contract says of itself."""

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """What an address holds of a token, or of the coin (None)."""


class Sightings:
    """Looks at chains for people. `tokens` has each chain's token contract."""

    def __init__(
        self,
        home: Connection,
        chains: Mapping[str, LookedAt],
        tokens: Mapping[str, bytes],
        find_owner: FindOwner,
    ) -> None:
        self._home = home
        self._chains = chains
        self._tokens = tokens
        self._find_owner = find_owner

    async def look(self, text: str) -> dict[str, Any]:
        """What a hash or an address is on each chain, as a document. Raises NotAsked."""
        text = text.strip()
        digits, place = _read(text)
        return await self._look_all(text, digits, place)

    async def _look_all(self, text: str, digits: str, place: tuple[Family, bytes] | None) -> dict[str, Any]:
        names = [name for name in self._chains if place is None or CHAINS[name].family is place[0]]
        seen: list[dict[str, Any]] = []
        for name in names:
            try:
                async with asyncio.timeout(LIMIT_S):
                    if place is None:
                        seen.append(await self._look_up(name, digits))
                    else:
                        seen.append(await self._read_address(name, place[1]))
            except (ChainAway, ChainDisagrees, NodeFailed, NodeRefused, TimeoutError) as error:
                why = str(error) or f"no answer within {LIMIT_S:g} s"
                seen.append({"chainType": name, "state": "away", "why": why, "moved": []})
        found = [one for one in seen if one["state"] not in ("unknown", "away")]
        return {"lookedFor": text, "isHash": place is None, "found": bool(found), "chains": seen}

    async def _look_up(self, chain: str, digits: str) -> dict[str, Any]:
        tx_hash = f"0x{digits}" if is_evm(chain) else digits
        transaction = await self._chains[chain].look_up(tx_hash)
        if transaction is None:
            return {"chainType": chain, "state": "unknown", "why": None, "moved": []}
        is_final = transaction.number <= (await self._chains[chain].final()).number
        state: State = "failed" if not transaction.is_success else "final" if is_final else "unconfirmed"
        moved = [await self._describe(chain, one) for one in await self._choose(transaction.moved)]
        left = len(transaction.moved) - len(moved)
        why = count_of(left, "more transfer") if left else transaction.other
        return {"chainType": chain, "state": state, "why": why, "moved": moved}

    async def _choose(self, moved: Sequence[Moved]) -> Sequence[Moved]:
        """At most `MAX_MOVED` of these, those to us first."""
        if len(moved) <= MAX_MOVED:
            return moved
        recipients = {one.recipient for one in moved}
        ours = {each for each in recipients if await own_addresses.find(self._home, each) is not None}
        return sorted(moved, key=lambda one: one.recipient not in ours)[:MAX_MOVED]

    async def _read_address(self, chain: str, address: bytes) -> dict[str, Any]:
        held = []
        for contract in (None, self._tokens[chain]):
            amount = await self._chains[chain].foreign_balance(address, contract)
            if amount:
                held.append(await self._describe(chain, Moved(contract, b"", address, amount)))
        owner = await self._name(address)
        return {"chainType": chain, "state": "read", "why": None, "moved": held, **owner}

    async def _describe(self, chain: str, moved: Moved) -> dict[str, Any]:
        words = TokenWords(COINS[chain], CHAINS[chain].coin_decimals)
        is_ours = moved.contract == self._tokens[chain]
        if is_ours:
            words = TokenWords(_OUR_TOKEN, CHAINS[chain].token_decimals)
        elif moved.contract is not None:
            words = TokenWords(None, None)
            # Contracts fail without a revert, too, which nodes report as a refusal of their own.
            with suppress(ChainAway, NodeFailed, NodeRefused):
                words = await self._chains[chain].read_words(moved.contract)
        return {
            "token": COINS[chain] if moved.contract is None else format_address(chain, moved.contract),
            "symbol": words.symbol,
            "isCoin": moved.contract is None,
            "isOurToken": is_ours,
            "units": str(moved.amount),
            "amount": _show_amount(moved.amount, words.decimals),
            "from": format_address(chain, moved.sender) if moved.sender else None,
            "to": format_address(chain, moved.recipient),
            **await self._name(moved.recipient),
        }

    async def _name(self, address: bytes) -> dict[str, Any]:
        """Whose an address is."""
        own = await own_addresses.find(self._home, address)
        named: dict[str, Any] = {"own": own, "merchantId": None, "extUserId": None}
        if own is Own.DEPOSIT and (account := await store.find_account(self._home, address)) is not None:
            owner = await self._find_owner(account.merchant_id, address)
            named["merchantId"] = account.merchant_id
            named["extUserId"] = None if owner is None else owner.ext_user_id
        return named


def can_look_for(text: str) -> bool:
    """Whether a text is the hash of a transaction or an address. Pure."""
    try:
        _read(text)
    except NotAsked:
        return False
    return True


def _read(text: str) -> tuple[str, tuple[Family, bytes] | None]:
    """The digits of a hash, or the family and the bytes of an address. Raises NotAsked."""
    text = drop_invisible(text)
    digits = text.lower().removeprefix("0x")
    if len(digits) == _HASH_DIGITS and all(digit in "0123456789abcdef" for digit in digits):
        return digits, None
    try:
        return "", parse_wallet_address(text)
    except ValueError:
        raise NotAsked("That is neither the hash of a transaction nor an address.") from None


def _show_amount(amount: int, decimals: int | None) -> str | None:
    """A plain decimal. None if nobody says how many decimals there are."""
    if not decimals:
        return None if decimals is None else str(amount)
    return show_coins(decimals)(amount)


def describe_moved(one: Mapping[str, Any]) -> str:
    """One transfer or holding as a sentence for a terminal. Pure."""
    what = f"{one['amount'] or one['units'] + ' smallest units'} "
    if one["isCoin"]:
        what += str(one["token"])
    elif one["isOurToken"]:
        what += f"{_OUR_TOKEN}, the token of the settings"
    else:
        said = (
            f"its contract calls itself {one['symbol']!r}" if one["symbol"] else "its contract says no name"
        )
        what += f"of token {one['token']}, which is not the one of the settings ({said})"
    return f"{what}, to {describe_place(one)}"


def describe_place(one: Mapping[str, Any]) -> str:
    """An address and whose it is. Pure."""
    if one["merchantId"] is None:
        return f"{one['to']} ({one['own'] or 'not ours'})"
    user = "" if one["extUserId"] is None else f", sub-user {one['extUserId']}"
    return f"{one['to']} (deposit address of merchant {one['merchantId']}{user})"
