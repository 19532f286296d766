"""A book whose archive is written or restored while it moves. The job table keeps the two apart. Here it is
left out, as for a command whose session with home has died: the move sees it all the same.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.archive_scene import add_up, moment_of, write_months
from tests.book.fake_writer import MERCHANT_ID, FakeWriter
from tests.book.test_checkpoints import SIGNER
from tests.cells.book_moved import move_to
from tests.cells.layout import Layout
from tests.conftest import FAR

from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.book.archive.closing import close_months
from merchant_wallet.book.archive.files import ArchiveFolder
from merchant_wallet.book.archive.months import BookAway, list_months
from merchant_wallet.book.archive.removal import remove_rows, restore_rows
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.merchants.cells.copies import CheckpointFolder, CopyWrong
from merchant_wallet.merchants.cells.moves import MoveRefused
from merchant_wallet.postgres import jobs

COPYING = "copying the journal: 0"
VERIFYING = "verifying: "
FOLLOWING = "following"
SWITCHING = "switching"


class Scene:
    """A book in the default cell with three closed months in files, whose rows are still in the tables."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self.layout = layout
        self.folder = folder
        self.files = ArchiveFolder(folder / "archive")
        with closing(FakeWriter(layout.url)) as book:
            write_months(book)
        with connect_sync(layout.url) as home:
            # A platform that was installed like this has opened its books.
            home.execute("update merchant set carried_version = settings_version")
        asyncio.run(add_up(layout.url))
        asyncio.run(self.write_files(SIGNER.sign_text))

    async def write_files(self, sign: Callable[[str], str]) -> None:
        """What `archive run --keep-rows` does, in the old cell."""
        async with await connect(self.layout.url) as cell:
            found = await cell.execute("select entry_id, hash from entry order by entry_id desc limit 1")
            head = await found.fetchone()
            assert head is not None
            seen, at_ms = {head[0]: head[1].hex()}, moment_of("2026-01")
            closed = await close_months(
                cell, self.files, MERCHANT_ID, moment_of("2025-12"), seen, sign, at_ms, ignore
            )
            assert len(closed.months) == 3

    def remove(self) -> None:
        """What `archive run` does, in the old cell."""
        self._on_months(lambda cell, month: remove_rows(cell, month, ignore))

    def restore(self) -> None:
        """What `archive restore` does, in the old cell."""
        self._on_months(lambda cell, month: restore_rows(cell, self.files, month, ignore), newest_first=True)

    def _on_months(self, act: Callable[..., object], *, newest_first: bool = False) -> None:
        async def go() -> None:
            async with await connect(self.layout.url) as cell:
                months = await list_months(cell, MERCHANT_ID)
                for month in reversed(months) if newest_first else months:
                    await act(cell, month)  # type: ignore[misc]

        # The mover's loop is in this thread.
        failed: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(go())
            except BookAway as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    async def move(self, progress: Callable[[str], None] = print) -> None:
        """Begin or continue the move."""
        checkpoints = CheckpointFolder(self.folder, SIGNER.keys, self.files)
        await move_to(self.layout.url, MERCHANT_ID, FAR, progress=progress, checkpoints=checkpoints)

    def count(self, url: str) -> tuple[int, int]:
        """Entries in the tables of a cell, and those in files alone."""
        with connect_sync(url) as cell:
            [found] = cell.execute(
                "select (select count(*) from entry), (select count(*) from archived_month m"
                " where removed_id >= first_id)"
            ).fetchall()
        return found

    async def verify(self, url: str) -> None:
        """The book is sound in this cell, with what is in files."""
        async with await connect(self.layout.url) as home, await connect(url) as cell:
            report = await verify_book(home, cell, MERCHANT_ID, archive=self.files)
        assert report.violation is None


def ignore(*_: object) -> None:
    """No progress."""


@pytest.fixture
def scene(layout: Layout, tmp_path: Path) -> Scene:
    """The book."""
    return Scene(layout, tmp_path)


@pytest.mark.parametrize("when", [COPYING, VERIFYING, FOLLOWING, SWITCHING])
@pytest.mark.parametrize("act", [Scene.remove, Scene.restore])
def test_a_book_that_was_archived_or_restored_while_it_was_copied_moves_whole_or_not_at_all(
    scene: Scene, act: Callable[[Scene], None], when: str
) -> None:
    said: list[str] = []

    def interfere(text: str) -> None:
        if text.startswith(when) and when not in said:
            said.append(when)
            act(scene)

    async def scenario() -> None:
        old, new = scene.layout.url, scene.layout.far_url
        if act is Scene.restore:
            scene.remove()
        try:
            await scene.move(interfere)
        except CopyWrong:
            await scene.verify(old)
            before = scene.count(old)
            await scene.move()
        else:
            assert when == COPYING
            before = scene.count(old)
        assert when in said
        assert scene.count(new) == before
        await scene.verify(new)

    asyncio.run(scenario())


def test_a_closed_copy_is_neither_written_to_files_nor_removed(scene: Scene) -> None:
    def close(text: str) -> str:
        with connect_sync(scene.layout.url) as cell:
            cell.execute("update book set is_open = false")
        return SIGNER.sign_text(text)

    with connect_sync(scene.layout.url) as cell:
        cell.execute("delete from archived_month")
    with pytest.raises(BookAway):
        # It is closed while the first month is being signed.
        asyncio.run(scene.write_files(close))
    assert scene.count(scene.layout.url) == (21, 0)


def test_rows_of_the_old_copy_stay_after_the_switch(scene: Scene) -> None:
    asyncio.run(scene.move())
    with pytest.raises(BookAway):
        scene.remove()
    assert scene.count(scene.layout.url) == (21, 0)


def test_a_move_waits_for_no_archive_and_says_which_one_has_the_book(scene: Scene) -> None:
    async def scenario() -> None:
        async with await connect(scene.layout.url) as home:
            async with jobs.hold_book(home, jobs.Kind.ARCHIVE, MERCHANT_ID, "cli:ann") as cell_id:
                assert cell_id == 0
                with pytest.raises(
                    MoveRefused, match=rf"archive \(the book of merchant {MERCHANT_ID}\), begun by cli:ann"
                ):
                    await scene.move()
            await scene.move()

    asyncio.run(scenario())
