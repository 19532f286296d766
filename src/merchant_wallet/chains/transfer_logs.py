"""The Transfer logs of the token in one transaction, compared with the order. Pure.

Rules:
- A payout calls the token once, so every log of the token in its transaction belongs to the payout.
- Exactly one log, sent by the payer's wallet, in whole units, is a plain transfer.
- Several logs (a token that takes a fee) or none are never what was ordered, whatever arrived.
"""

from collections.abc import Sequence

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import FinalRecord, Transfer, TransferLog


def make_final_record(
    ordered: Transfer, wallet: bytes, transfer_logs: Sequence[TransferLog], tx_hash: str
) -> FinalRecord:
    """The record of a final transaction with these logs."""
    if len(transfer_logs) == 1 and transfer_logs[0].sender == wallet and not transfer_logs[0].remainder:
        moved = Transfer(
            ordered.chain, ordered.token, transfer_logs[0].recipient, transfer_logs[0].amount_units
        )
        return FinalRecord(moved, tx_hash)
    ours = [
        transfer_log
        for transfer_log in transfer_logs
        if (transfer_log.sender, transfer_log.recipient) == (wallet, ordered.recipient)
    ]
    arrived = sum(transfer_log.amount_units for transfer_log in ours)
    return FinalRecord(
        Transfer(ordered.chain, ordered.token, ordered.recipient, arrived), tx_hash, tuple(transfer_logs)
    )


def describe_final(final: FinalRecord) -> str:
    """What a transaction moved, log by log, as a text for an operator."""
    moved = final.transfer
    if not final.transfer_logs and moved.amount_units == 0:
        return f"no {moved.token} on {moved.chain} ({final.tx_hash})"
    if not final.transfer_logs:
        amount, recipient = format_units(moved.amount_units), format_address(moved.chain, moved.recipient)
        return f"{amount} {moved.token} on {moved.chain} to {recipient}"
    transfer_logs = [_describe(moved, transfer_log) for transfer_log in final.transfer_logs]
    return (
        f"{' and '.join(transfer_logs)} on {moved.chain} ({len(transfer_logs)} transfers in {final.tx_hash})"
    )


def _describe(moved: Transfer, transfer_log: TransferLog) -> str:
    sender, recipient = (
        format_address(moved.chain, address) for address in (transfer_log.sender, transfer_log.recipient)
    )
    rest = f" and {transfer_log.remainder} of its smallest units" if transfer_log.remainder else ""
    return f"{format_units(transfer_log.amount_units)} {moved.token}{rest} from {sender} to {recipient}"
