"""Deposit addresses that hold something else than reconciliation expects."""

from collections.abc import Mapping, Sequence
from typing import Final

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.cells import Databases
from merchant_wallet.custody import records
from merchant_wallet.custody.comparison import JudgedMovement

SHOWN_STRAYS: Final = 20


async def find_strays(
    databases: Databases,
    name: str,
    held: Mapping[bytes, int],
    judged: Sequence[JudgedMovement],
    rests: Mapping[bytes, int],
) -> dict[str, tuple[int, int]]:
    """Deposit addresses whose balance differs from their deposits, sweeps and open movements.

    An open sweep has moved its amount or it has not.
    """
    found = await records.read_expected(databases, name)
    expected = {address: units + rests.get(address, 0) for address, (units, _) in found.items()}
    for each in judged:
        movement = each.movement
        address = movement.sender if movement.is_out else movement.recipient
        # A held deposit is already expected.
        if address in expected and not each.is_booked and not each.is_held:
            expected[address] += movement.effect_units
    strays = {
        format_address(name, address): (held[address], units)
        for address, units in expected.items()
        if address in held and held[address] not in (units, units - found[address][1])
    }
    return dict(sorted(strays.items())[:SHOWN_STRAYS])
