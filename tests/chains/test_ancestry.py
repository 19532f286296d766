"""Which blocks are final: the ancestors of a final block, as far as they are known."""

from merchant_wallet.chains.ancestry import Ancestry
from merchant_wallet.chains.protocol import Block


def block(number: int, branch: str = "a", parent: str = "a") -> Block:
    return Block(number, f"{number}{branch}", f"{number - 1}{parent}", number)


def list_final(ancestry: Ancestry) -> list[str | None]:
    return [ancestry.find_hash(number) for number in range(1, 7)]


def test_a_final_block_makes_its_known_ancestors_final_and_nothing_else() -> None:
    ancestry = Ancestry()
    for number in (2, 3, 4, 5, 6):
        ancestry.add(block(number))
    assert list_final(ancestry) == [None] * 6
    ancestry.note_final(block(4))
    # Nobody has shown block 1. Block 2 names it.
    assert list_final(ancestry) == ["1a", "2a", "3a", "4a", None, None]
    ancestry.note_final(block(6))
    assert list_final(ancestry) == ["1a", "2a", "3a", "4a", "5a", "6a"]


def test_a_block_of_another_branch_is_not_final() -> None:
    ancestry = Ancestry()
    for each in (block(3), block(4), block(4, "b"), block(5, "b", "b")):
        ancestry.add(each)
    ancestry.note_final(block(5, "b", "b"))
    assert list_final(ancestry) == [None, "2a", "3a", "4b", "5b", None]


def test_nothing_below_a_gap_is_known() -> None:
    ancestry = Ancestry()
    ancestry.add(block(2))
    ancestry.note_final(block(2))
    ancestry.note_final(block(5))
    assert list_final(ancestry) == [None, None, None, None, "5a", None]
    # A branch that replaces what was final shows nothing of the old one.
    ancestry.add(block(5, "b", "b"))
    ancestry.note_final(block(5, "b", "b"))
    assert list_final(ancestry) == [None, None, None, "4b", "5b", None]
