"""The statements of this package, and the names that others see in the database."""

from pathlib import Path
from typing import Final

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("backups.sql"))
SLOT: Final = "wallet_backup"
