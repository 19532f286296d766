"""The kinds of acts that people ask for, and what each is about. Pure.

Rules: a kind is also an action of the audit log. A new kind needs a row in
`processes/act_performers.py`.
"""

from typing import Final

RECONCILE: Final = "reconcile.run"
RESCAN: Final = "deposits.rescan"
RELEASE_DEPOSIT: Final = "deposits.release"
DROP_DEPOSIT: Final = "deposits.drop"
PLAN_SWEEPS: Final = "sweep.plan"
RUN_SWEEPS: Final = "sweep.run"
END_SWEEP: Final = "sweep.end"
LOOK: Final = "rescue.look"
SET_SUB_USER: Final = "sub_user.set"

ALL_CHAINS: Final = "all chains"


def format_chain(chain: str | None) -> str:
    """The subject of an act about one chain, or about all."""
    return ALL_CHAINS if chain is None else f"chain {chain}"


def format_sweep(sweep_id: int) -> str:
    """The subject of an act about one sweep."""
    return f"sweep {sweep_id}"


def format_look(text: str) -> str:
    """The subject of a look at a hash or an address."""
    return f"rescue {text}"


def format_deposit(chain: str, tx_hash: str, log_index: int) -> str:
    """The subject of an act about one deposit."""
    return f"deposit {chain} {tx_hash}:{log_index}"
