"""Checks that a database belongs to the mode that the settings name: sandbox or live."""

from merchant_wallet.base.config import ConfigError
from merchant_wallet.base.settings import Settings
from merchant_wallet.merchants import xpub_pool


async def require_mode(settings: Settings, connection: xpub_pool.Connection) -> None:
    """Check that the merchants were created in the mode that the settings name. Raises ConfigError.

    The sandbox only pretends to pay orders, and they look paid. Balances from there must never be paid with
    money. The mode also decides whether one person is enough for a change.
    """
    level = await xpub_pool.read_size(connection)
    if settings.sandbox and level.accounts > level.free:
        raise ConfigError(
            "WALLET_SANDBOX is not false, and this database has merchants with real money. Their orders "
            "would be marked as paid, but no money would be sent. Set WALLET_SANDBOX=false, or name another "
            "database."
        )
    if not settings.sandbox and (strangers := await xpub_pool.find_merchants_without_account(connection)):
        raise ConfigError(
            "WALLET_SANDBOX is false, and merchants of this database were created in the sandbox: "
            f"{strangers}. Use a new database for real money, and create them again there."
        )
