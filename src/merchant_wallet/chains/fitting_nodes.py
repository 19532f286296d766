"""Which nodes fitted the settings lately, so that not everything is asked again each minute."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

KNOWN_S: Final = 600.0
"""How long the chain and the token of a node that fits are not asked for again."""

N = TypeVar("N", bound=Hashable)
Check = Callable[[N], Awaitable[list[str]]]


class FittingNodes(Generic[N]):
    """The nodes of one chain. `clock_s` counts seconds from any moment."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._fitted_s: dict[N, float] = {}

    async def check(self, node: N, check_all: Check[N], check_known: Check[N]) -> list[str]:
        """What is wrong with a node, by `check_known` if all of it fitted lately.

        After a failure everything is asked for: another node may be in its place. Raises what they raise.
        """
        now_s = self._clock_s()
        fitted_s = self._fitted_s.pop(node, float("-inf"))
        is_known = now_s - fitted_s < KNOWN_S
        if not (wrong := await (check_known if is_known else check_all)(node)):
            self._fitted_s[node] = fitted_s if is_known else now_s
        return wrong
