"""The chains that reconciliation reads: those of the settings, or the sandbox's.

Rules: opening sends nothing to a node and needs no key.
"""

from collections.abc import Callable, Mapping
from typing import Final

from psycopg import AsyncConnection

from merchant_wallet.base.chains import is_evm
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.workers import Connect, WorkerConnection
from merchant_wallet.chains.sandbox.chain import ENDLESS_UNITS
from merchant_wallet.custody.balances import SURVEY_SIZE, CustodyReader
from merchant_wallet.custody.sandbox import SandboxCustody
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.nodes import ChainReaders, open_chain_readers
from merchant_wallet.processes.payout_workers import open_sandbox

BATCHED_SURVEY_SIZE: Final = 100
"""Balances that one survey reads from a node that answers many at once."""
UNLIMITED_RANGE_BLOCKS: Final = 2**62
"""A sandbox's block number is a time, so all blocks are read at once."""


class CustodyReaders:
    """All chains of the settings. `close` closes their connections.

    With `readers`, which stay open, what others have read from the nodes is not read again.
    """

    def __init__(
        self,
        base: Base,
        connect: Connect,
        clock: Callable[[], int] = now_ms,
        *,
        readers: ChainReaders | None = None,
    ) -> None:
        self._base = base
        self._clock = clock
        self._worker_connection = WorkerConnection(connect)
        self._opened = (
            {} if readers is not None or base.settings.sandbox else open_chain_readers(base.settings)
        )
        self._readers = self._opened if readers is None else readers

    def open(self, connection: AsyncConnection) -> Mapping[str, CustodyReader]:
        """Each chain by its name; the sandbox's are read over the connection."""
        if self._base.settings.sandbox:
            return self._open_sandbox(connection)
        return {
            name: CustodyReader(
                reader,
                keeps_past=is_evm(name),
                read_many=getattr(reader, "balances", None),
                survey_size=BATCHED_SURVEY_SIZE if hasattr(reader, "balances") else SURVEY_SIZE,
                read_successor=reader.successor,
            )
            for name, reader in self._readers.items()
        }

    async def close(self) -> None:
        """Close the connections."""
        await self._worker_connection.close()
        for reader in self._opened.values():
            await reader.close()

    def _open_sandbox(self, connection: AsyncConnection) -> dict[str, CustodyReader]:
        confirm_ms = self._base.settings.sandbox_confirm_ms
        return {
            name: CustodyReader(
                SandboxCustody(name, chain.wallet, connection, confirm_ms=confirm_ms, clock=self._clock),
                keeps_past=True,
                largest_range_blocks=UNLIMITED_RANGE_BLOCKS,
                wallet=chain.wallet,
                own_units=ENDLESS_UNITS,
                survey_size=BATCHED_SURVEY_SIZE,
            )
            for name, chain in open_sandbox(self._base, self._worker_connection).items()
        }
