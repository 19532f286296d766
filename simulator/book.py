"""The model of one merchant's book: everything that it may be, given all that was answered. Pure.

The book knows a first state and its **doubts**. A doubt may have happened, or may still happen: an order
whose answer was lost, an amount that comes back from a withdrawal, a deposit that is not credited yet. A
**world** is one choice of doubts that have happened. Every answer is compared with every world. Worlds that
it contradicts are dropped. When none is left, the service is wrong.

| What is seen | What the model does |
| --- | --- |
| no answer, 50000, 50300 | the order becomes a doubt |
| success of a new order | worlds in which it is refused, or gives another amount, are dropped |
| success of a doubt | it has happened, once: where it had not, it happens now |
| success of a known order | the answer must be the first one's |
| refusal | worlds in which the order is accepted, or was accepted, are dropped |
| a balance | worlds with another balance are dropped |

A doubt may happen at any time. So before anything is compared, each world grows by what could happen in it.
An order in doubt may happen by every tariff that has counted since it was sent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from simulator.failure import Broken, Contradiction
from simulator.orders import DEPOSIT, Effect, Order, Refusal, Tariff, judge, write
from simulator.tariffs import Tariffs

Key = tuple[str, str]
World = frozenset[tuple[Key, Effect]]
CONFLICT: Final = 40900
MOST_WORLDS: Final = 4096
"""More would take longer than answers do. Callers keep their doubts few."""


class Known(NamedTuple):
    """An accepted order: what it was, what it did, and the id that its first answer had."""

    order: Order
    effect: Effect
    answer_id: str


@dataclass(frozen=True)
class Doubt:
    """What may happen: an order, a deposit, or the arrival of `effect`, not before `after` has happened."""

    key: Key
    order: Order | None = None
    effect: Effect | None = None
    after: Key | None = None

    @property
    def is_request(self) -> bool:
        """Whether the merchant has asked for it, and may ask again."""
        return self.order is not None and self.order.operation != DEPOSIT


class Book:
    """A merchant's book as far as it can be known."""

    def __init__(self, balances: Mapping[str, int], tariff: Tariff, *, is_apart: bool = False) -> None:
        """`is_apart`: it is in the apart cell."""
        self.at_s = 0.0
        """When the request was sent that is answered next, or earlier."""
        self._balances = dict(balances)
        self._tariffs = Tariffs(tariff, is_apart=is_apart)
        self._doubts: dict[Key, Doubt] = {}
        self._tariffs_of: dict[Key, list[Tariff]] = {}
        """By which tariffs an order in doubt may happen."""
        self._worlds: set[World] = {frozenset()}
        self.known: dict[Key, Known] = {}
        self._arrived: dict[Key, Effect] = {}
        """What was no order, and is no doubt any more."""

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What is not known yet, oldest first."""
        return tuple(self._doubts.values())

    @property
    def newest_tariff(self) -> Tariff:
        """What operators have set last."""
        return self._tariffs.newest

    def list_tariffs(self, order: Order) -> list[Tariff]:
        """What may count for an order that is sent now."""
        return self._tariffs.list_possible(order, self.at_s)

    def list_limits(self, order: Order) -> set[int]:
        """The approval limits that may count for an order that is sent now, or was sent before."""
        return {tariff.approval_limit for tariff in self._list_tariffs_of(order)}

    def begin_change(self, tariff: Tariff) -> None:
        """An operator begins to change something: from now on the old and the new may count."""
        self._tariffs.begin_change(tariff)
        self._grow()

    def end_change(self, at_s: float, *, has_reached_cell: bool = False) -> None:
        """The change was acknowledged, and has perhaps reached the apart cell."""
        self._grow()
        self._tariffs.end_change(at_s, has_reached_cell=has_reached_cell)

    def begin_move(self) -> None:
        """The book may go to the other cell from now on."""
        self._tariffs.begin_move()
        self._grow()

    def end_move(self, *, is_apart: bool) -> None:
        """The book has arrived."""
        self._grow()
        self._tariffs.end_move(is_apart=is_apart)

    def list_balances(self, account: str) -> set[int]:
        """What an account may have now."""
        self._grow()
        return {self._add_up(world).get(account, 0) for world in self._worlds}

    def lose(self, order: Order) -> None:
        """No answer came: the order may have been accepted, or may be accepted later."""
        if order.key not in self.known:
            self._doubts.setdefault(order.key, Doubt(order.key, order))
            self._note_tariffs(order)

    def expect(self, doubt: Doubt) -> None:
        """Something may happen from now on."""
        self._doubts[doubt.key] = doubt
        self._grow()

    def accept(self, order: Order, answer_id: str, is_told: Callable[[Effect], bool]) -> Effect:
        """A success came. `is_told` says whether the answer tells of an effect. Raises Contradiction."""
        known = self.known.get(order.key)
        if known is not None:
            if known.order != order:
                raise Contradiction(f"{order} was accepted, although its id names {known.order}")
            if known.answer_id != answer_id or not is_told(known.effect):
                raise Contradiction(f"the repeat of {order} was answered otherwise than first: {known}")
            return known.effect
        self._grow()
        left = {
            (world, effect)
            for before in self._worlds
            for world, effect in self._find_acceptances(before, order)
            if is_told(effect)
        }
        effects = {effect for _, effect in left}
        if len(effects) != 1:
            raise Contradiction(f"{order} was accepted with another result; possible is {self._show(order)}")
        (effect,) = effects
        if order.key not in self._doubts:
            self._see_tariffs(order, effect)
        self._forget(order.key)
        self._worlds = {world for world, _ in left}
        self.known[order.key] = Known(order, effect, answer_id)
        self._move(effect)
        return effect

    def refuse(self, order: Order, code: int) -> None:
        """A refusal came. Raises Contradiction."""
        known = self.known.get(order.key)
        if known is not None:
            if code == CONFLICT and known.order != order:
                return
            raise Contradiction(f"{order} was refused with {code}, although it was accepted before: {known}")
        self._grow()
        left = {
            world
            for world in self._worlds
            if _find(world, order.key) is None and Refusal(code) in self._judge(order, world)
        }
        self._keep(left, f"{order} was refused with {code}; possible is {self._show(order)}")

    def see_balances(self, seen: Mapping[str, int]) -> None:
        """Balances of one moment came. Raises Contradiction."""
        self._grow()
        found = {world: self._add_up(world) for world in self._worlds}
        possible = sorted({_show({name: each.get(name, 0) for name in seen}) for each in found.values()})
        self._keep(
            {world for world, each in found.items() if all(each.get(n, 0) == u for n, u in seen.items())},
            f"the balances are {_show(seen)}; possible is {' or '.join(possible)}",
        )

    def see(self, key: Key, has_happened: bool) -> None:
        """It is seen whether a doubt has happened by now. Raises Contradiction."""
        if key not in self._doubts:
            return
        self._grow()
        self._keep(
            {world for world in self._worlds if (_find(world, key) is not None) is has_happened},
            f"{' '.join(key)} {'has' if has_happened else 'has not'} happened, which no answer allows",
        )

    def see_arrival(self, key: Key, arrival: int) -> None:
        """It is seen what a doubt has brought, which answers may have shown before. Raises Contradiction."""
        self._grow()
        before = self._arrived.get(key)
        found = {world: before or _find(world, key) for world in self._worlds}
        possible = sorted({write(effect.arrival) for effect in found.values() if effect is not None})
        self._keep(
            {world for world, effect in found.items() if effect is not None and effect.arrival == arrival},
            f"{' '.join(key)} has brought {write(arrival)}; possible is {' or '.join(possible) or 'nothing'}",
        )

    def end_doubt(self, key: Key) -> None:
        """A doubt never happened and can't any more. Nor can what follows it. Raises Contradiction."""
        self.see(key, False)
        self._forget(key)
        for later in [doubt.key for doubt in self._doubts.values() if doubt.after == key]:
            self.end_doubt(later)

    def _find_acceptances(self, world: World, order: Order) -> list[tuple[World, Effect]]:
        """How the order may have been accepted in a world, each with the world without it."""
        earlier = _find(world, order.key)
        if earlier is not None:
            return [(world - {(order.key, earlier)}, earlier)]
        outcomes = self._judge(order, world)
        return [(world, outcome) for outcome in outcomes if isinstance(outcome, Effect)]

    def _judge(self, order: Order, world: World) -> set[Effect | Refusal]:
        balances = self._add_up(world)
        return {judge(order, balances, tariff) for tariff in self._list_tariffs_of(order)}

    def _list_tariffs_of(self, order: Order) -> list[Tariff]:
        return [*self.list_tariffs(order), *self._tariffs_of.get(order.key, ())]

    def _see_tariffs(self, order: Order, effect: Effect) -> None:
        """Keep which tariffs may have counted for an order that was accepted just now."""
        found = [self._add_up(world) for world in self._worlds]
        self._tariffs.see(
            order,
            [
                tariff
                for tariff in self.list_tariffs(order)
                if any(judge(order, each, tariff) == effect for each in found)
            ],
        )

    def _note_tariffs(self, order: Order) -> None:
        tariffs = self._tariffs_of.setdefault(order.key, [])
        tariffs += [tariff for tariff in self.list_tariffs(order) if tariff not in tariffs]

    def _forget(self, key: Key) -> None:
        self._doubts.pop(key, None)
        self._tariffs_of.pop(key, None)

    def _add_up(self, world: World) -> dict[str, int]:
        balances = dict(self._balances)
        for _, effect in world:
            for account, units in effect.moves:
                balances[account] = balances.get(account, 0) + units
        return balances

    def _move(self, effect: Effect) -> None:
        for account, units in effect.moves:
            self._balances[account] = self._balances.get(account, 0) + units

    def _keep(self, worlds: set[World], text: str) -> None:
        if not worlds:
            raise Contradiction(text)
        self._worlds = worlds
        self._end_arrivals()

    def _end_arrivals(self) -> None:
        """What has arrived in every world is no doubt any more."""
        for key, effect in frozenset.intersection(*self._worlds):
            doubt = self._doubts[key]
            if not doubt.is_request and doubt.after not in self._doubts:
                self._forget(key)
                self._worlds = {world - {(key, effect)} for world in self._worlds}
                self._arrived[key] = effect
                self._move(effect)

    def _grow(self) -> None:
        """Add every world that has become possible."""
        for doubt in self._doubts.values():
            if doubt.order is not None:
                self._note_tariffs(doubt.order)
        fresh = list(self._worlds) if self._doubts else []
        while fresh:
            world = fresh.pop()
            for doubt in self._doubts.values():
                for effect in self._find_effects(doubt, world):
                    grown = world | {(doubt.key, effect)}
                    if grown not in self._worlds:
                        self._worlds.add(grown)
                        fresh.append(grown)
            if len(self._worlds) > MOST_WORLDS:
                raise Broken(f"there are more than {MOST_WORLDS} worlds: {[*self._doubts]}")

    def _find_effects(self, doubt: Doubt, world: World) -> list[Effect]:
        """What a doubt may do in a world in which it has not happened."""
        if _find(world, doubt.key) is not None:
            return []
        if doubt.after in self._doubts and _find(world, doubt.after) is None:
            return []
        if doubt.order is None:
            return [] if doubt.effect is None else [doubt.effect]
        return [outcome for outcome in self._judge(doubt.order, world) if isinstance(outcome, Effect)]

    def _show(self, order: Order) -> str:
        """What may be answered, for people."""
        may = {str(outcome) for world in self._worlds for outcome in self._judge(order, world)}
        earlier = {str(found) for world in self._worlds if (found := _find(world, order.key)) is not None}
        return "; ".join(sorted(may | earlier))


def _find(world: World, key: Key | None) -> Effect | None:
    return next((effect for each, effect in world if each == key), None)


def _show(balances: Mapping[str, int]) -> str:
    return ", ".join(f"{account} {write(units)}" for account, units in balances.items())
