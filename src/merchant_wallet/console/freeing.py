"""Who can free an order that is not paid, and how: one row for each reason in `wait_reasons`. Pure.

Rules:
- A row names people by the right that they need, or says who else can do it: who runs the server, the
  token's issuer, the platform's staff.
- `command` is what the same person types at a terminal. `href` is the page with the button.
- What goes on by itself says so.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from merchant_wallet.operators.roles import Right, list_roles
from merchant_wallet.web.languages import N_

SAFETY: Final = "/console/safety"
SCREENING: Final = "/console/screening"

SERVER: Final = N_("Whoever runs the server")
ISSUER: Final = N_("The token's issuer")
STAFF: Final = N_("The platform's staff")
NOBODY: Final = N_("Nobody needs to")
RELEASE_OR_REFUSE: Final = N_(
    "One person proposes to release it, another accepts. Or one person refuses it: then it is refunded."
)


class Way(msgspec.Struct, frozen=True):
    """How an order goes on again. Either people with `right` free it, or `who`, an English text.

    `people`: how many are needed. `text` is an English text with placeholders of the reason's values.
    """

    text: str
    right: Right | None = None
    people: int = 1
    who: str = ""
    command: str = ""
    href: str = ""

    @property
    def roles(self) -> list[str]:
        """The roles that may free it; empty if no right of the console does."""
        return [] if self.right is None else list_roles(self.right)


FROZEN: Final = Way(
    N_("Compare the order, its signed transfers and the chain. Then resume it, or cancel it."),
    Right.THAW,
    command="merchant-wallet withdrawals resume",
)
FROZEN_BEGUN: Final = Way(
    N_("Compare the order, its signed transfers and the chain. Then resume it."),
    Right.THAW,
    command="merchant-wallet withdrawals resume",
)
SUSPENDED: Final = Way(
    N_("Its payouts go on when the merchant is active again."),
    Right.CHANGE_MERCHANT,
    command="merchant-wallet merchant resume",
)
STOPPED: Final = Way(
    N_("One person proposes to resume {chain}, another accepts."),
    Right.STOP_PAYOUTS,
    people=2,
    command="merchant-wallet wallets resume {chain}",
    href=f"{SAFETY}#chain-{{chain}}",
)
ROLLED_BACK: Final = Way(
    N_("What was lost is entered into the books. Then the evidence is accepted at the server's terminal."),
    who=SERVER,
    command="merchant-wallet book accept-rollback",
)
UNCLAIMED: Final = Way(
    N_("Look whether workers run. They take it up by themselves."),
    who=SERVER,
    command="merchant-wallet doctor",
    href=f"{SAFETY}#workers",
)
PLATFORM: Final = Way(N_("You need do nothing. The money stays on hold."), who=STAFF)
WAITS_FOR_HOURS: Final = Way(N_("It goes on by itself when the hours begin."), who=NOBODY)
ASK_PLATFORM: Final = Way(N_("Ask the platform why."), who=STAFF)

_NODES: Final = f"{SAFETY}#nodes"
_CHAIN: Final = f"{SAFETY}#chain-{{chain}}"

OBSTACLES: Final[Mapping[str, Way]] = {
    "funds": Way(
        N_("Sweep deposits to the hot wallet, or send USDT to it. Then it goes on by itself."),
        Right.SWEEP,
        command="merchant-wallet sweep run",
        href=_CHAIN,
    ),
    "fuel": Way(
        N_(
            "Send the chain's own coin to the hot wallet, enough for all payouts on their way. Then it goes "
            "on by itself."
        ),
        who=STAFF,
        href=_CHAIN,
    ),
    "fee": Way(
        N_(
            "It goes on by itself when fees fall. The highest fee is the setting WALLET_{chain}_FEE_CAP: it "
            "counts the most that a payout may cost, not what it will cost."
        ),
        who=SERVER,
    ),
    "token_fee": Way(
        N_("It goes on by itself when the issuer takes no fee any more. Pay urgent orders by hand."),
        who=ISSUER,
    ),
    "paused": Way(N_("It goes on by itself when the issuer has ended the pause."), who=ISSUER),
    "deprecated": Way(
        N_("Name the new contract in the setting WALLET_{chain}_TOKEN, as the guide to real chains says."),
        who=SERVER,
        command="merchant-wallet doctor",
    ),
    "wallet": Way(
        N_("Talk to the issuer, or import the key of another hot wallet."),
        who=SERVER,
        command="merchant-wallet keys import",
    ),
    "node": Way(
        N_(
            "Look at the nodes of {chain}. It goes on by itself when they answer and agree, and when blocks "
            "become final again."
        ),
        who=SERVER,
        href=_NODES,
    ),
    "stale": Way(
        N_("Look at the nodes of {chain}: they answer too slowly. Then it goes on by itself."),
        who=SERVER,
        href=_NODES,
    ),
    "clock": Way(
        N_("Set the clocks of all machines that run workers. Then it goes on by itself."),
        who=SERVER,
        href=f"{SAFETY}#workers",
    ),
    "key": Way(
        N_("Bring the keystore of this database back, or take the wallet if you know that it is yours."),
        who=SERVER,
        command="merchant-wallet wallets take {chain}",
    ),
    "limit": Way(
        N_("The signer refused it. Make sure on the chain that nothing was paid, then let it sign again."),
        who=SERVER,
        command="merchant-wallet keys release ORDER",
    ),
    "lapsed": Way(
        N_("Look at the nodes of {chain} and at WALLET_{chain}_FEE_CAP. It is tried again by itself."),
        who=SERVER,
        href=_NODES,
    ),
    "stuck": Way(
        N_("Look at the nodes of {chain} and at WALLET_{chain}_FEE_CAP. It is tried again by itself."),
        who=SERVER,
        href=_NODES,
    ),
    "fault": Way(
        N_("The cause names the error. It is tried again by itself, and never paid twice."), who=SERVER
    ),
    "alert": Way(
        N_("Compare the transfer with the chain. It goes on by itself when the chain's answer is clear."),
        who=STAFF,
    ),
    "screening": Way(
        RELEASE_OR_REFUSE,
        Right.DECIDE_SCREENING,
        people=2,
        command="merchant-wallet screening release",
        href=SCREENING,
    ),
    "screening_away": Way(
        N_("It goes on by itself when the provider answers and the list can be read."),
        who=SERVER,
        command="merchant-wallet doctor",
        href=SCREENING,
    ),
    "payout_rule": Way(
        RELEASE_OR_REFUSE,
        Right.DECIDE_SCREENING,
        people=2,
        command="merchant-wallet screening release",
        href=SCREENING,
    ),
    "payout_hours": Way(
        N_("It goes on by itself when the hours begin. Two people may release it before."),
        Right.DECIDE_SCREENING,
        people=2,
        command="merchant-wallet screening release",
        href=SCREENING,
    ),
}
"""How each obstacle passes."""
OTHER_OBSTACLE: Final = Way(N_("It is tried again by itself."), who=NOBODY)
