"""The right that asking for each kind of act needs, for the console and for the worker. Pure.

The worker looks again before it begins: who asked may have lost the right.
"""

from collections.abc import Mapping
from typing import Final

from merchant_wallet.approvals.acts import kinds
from merchant_wallet.operators.roles import Right

ACT_RIGHTS: Final[Mapping[str, Right]] = {
    kinds.RECONCILE: Right.RECORD_TREASURY,
    kinds.RESCAN: Right.RECORD_TREASURY,
    kinds.PLAN_SWEEPS: Right.SWEEP,
    kinds.RUN_SWEEPS: Right.SWEEP,
    kinds.END_SWEEP: Right.SWEEP,
    kinds.LOOK: Right.RECORD_TREASURY,
    kinds.SET_SUB_USER: Right.CHANGE_SUB_USER,
    kinds.RELEASE_DEPOSIT: Right.RECORD_TREASURY,
    kinds.DROP_DEPOSIT: Right.RECORD_TREASURY,
}
