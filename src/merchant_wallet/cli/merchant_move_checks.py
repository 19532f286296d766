"""What `doctor` says of moves of single books: one line for each."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg

from merchant_wallet.cli.findings import Finding


async def check_merchant_moves(home: Any) -> AsyncIterator[Finding]:
    """A finding for each move of a book. One that nobody continues is wrong."""
    from merchant_wallet.merchants.cells import book_moves

    try:
        moves = await book_moves.list_moves(home)
    except psycopg.errors.InsufficientPrivilege:
        # The web side's role does not see moves.
        return
    for move in moves:
        yield judge_move(move, is_alive=await book_moves.is_mover_alive(home, move))


def judge_move(move: Any, *, is_alive: bool) -> Finding:
    """Judge a move: whether a command is at it, and whether anything is left to do."""
    age_s = (move.now_ms - move.changed_ms) // 1000
    name = f"move of merchant {move.merchant_id}"
    command = f"merchant-wallet merchant move {move.merchant_id}"
    if move.state == "switched":
        text = f"done {age_s} s ago; the old copy is still in cell {move.from_cell}"
        return Finding(name, text, hint=f"when you no longer want it: `{command} --drop-old`")
    text = f"{move.state}, to cell {move.to_cell}; the last step was {age_s} s ago"
    if is_alive:
        return Finding(name, f"{text}, and a command is at it")
    if move.state != "copying":
        closed = f"{text}, and no command is at it: the book is closed"
        return Finding(name, closed, "start `work`: it opens the book")
    advice = f"continue it with `{command}`, or remove the copy with `{command} --undo`"
    return Finding(name, f"{text}, and no command is at it", advice)
