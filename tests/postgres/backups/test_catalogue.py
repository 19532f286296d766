"""What the names in a store say: how far each back-up reaches, and what may be removed."""

import os
from pathlib import Path

from tests.rows import each_row

from merchant_wallet.postgres.backups.catalogue import Catalogue, Hole, list_systems, read_catalogue
from merchant_wallet.postgres.backups.names import (
    SEGMENT_BYTES,
    Completed,
    Fork,
    WalPart,
    format_position,
    parse_completed,
    parse_fork,
    parse_position,
    parse_wal,
    read_history,
)
from merchant_wallet.postgres.backups.recovery import choose_base
from merchant_wallet.postgres.backups.stores import FolderStore


def segment(number: int, timeline: int = 1) -> WalPart:
    """A whole segment."""
    return WalPart(timeline, number * SEGMENT_BYTES, (number + 1) * SEGMENT_BYTES)


def part(number: int, start: int, end: int, timeline: int = 1) -> WalPart:
    """A part of a segment."""
    return WalPart(timeline, number * SEGMENT_BYTES + start, number * SEGMENT_BYTES + end)


def catalogue(
    root: Path, bases: dict[str, Completed], wal: list[WalPart], forks: tuple[Fork, ...] = ()
) -> Catalogue:
    """A store with these objects, as it is read."""
    root.mkdir(exist_ok=True)
    store = FolderStore(root)
    for name, completed in bases.items():
        store.put(f"7/base/{name}/data.age", b"x")
        store.put(f"7/base/{name}/{completed.name}", b"")
    for each in wal:
        store.put(f"7/wal/{each.name}", b"")
    for fork in forks:
        store.put(f"7/history/{fork.name}", b"")
    return read_catalogue(store, "7")


def base(number: int, timeline: int = 1) -> Completed:
    """A base back-up within one segment."""
    return Completed(timeline, number * SEGMENT_BYTES + 40, number * SEGMENT_BYTES + 300, number * 1000)


@each_row(
    "wal",
    [
        segment(3),
        segment(300, 17),
        segment(3)._replace(until_ms=1_700_000_000_000),
        part(3, 0, 8),
        part(511, 77, SEGMENT_BYTES - 1),
        part(511, 77, SEGMENT_BYTES - 1)._replace(until_ms=1),
    ],
)
def test_a_name_of_wal_says_what_it_contains(wal: WalPart) -> None:
    assert parse_wal(wal.name) == wal


def test_names_and_positions_are_those_of_postgresql() -> None:
    assert segment(3).name == "000000010000000000000003.age"
    assert segment(256 + 7, 2).segment == "000000020000000100000007"
    assert parse_position("1/A0000028") == 0x1_A000_0028
    assert format_position(0x1_A000_0028) == "1/A0000028"
    assert parse_completed(base(2).name) == base(2)
    assert parse_fork(Fork(3, 2, 99).name) == Fork(3, 2, 99)
    text = "1\t0/5000000\tno recovery target specified\n\n2\t0/326CFE8\tbefore 2026-11-23\n"
    assert read_history(text, 3) == Fork(3, 2, 0x326CFE8)


def test_a_back_up_reaches_to_the_first_gap(tmp_path: Path) -> None:
    wal = [segment(2), segment(3), part(4, 0, 100), part(4, 100, 250), part(4, 260, 300), segment(6)]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal)

    assert found.find_end(found.bases[0]).position == 4 * SEGMENT_BYTES + 250


def test_a_moment_comes_from_names_and_never_goes_back(tmp_path: Path) -> None:
    wal = [
        segment(2)._replace(until_ms=5_000),
        part(3, 0, 9),
        part(3, 9, 12)._replace(until_ms=4_000),
    ]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal)
    assert base(2).ended_ms < found.find_end(found.bases[0]).until_ms == 5_000
    # An object whose name says none, and its file's time, say nothing.
    found = catalogue(tmp_path / "old", {"20260101T000000Z": base(2)}, [segment(2)])
    assert found.find_end(found.bases[0]).until_ms == base(2).ended_ms


@each_row(
    ("missing", "hole"),
    [
        # The last object: nothing shows that there was more.
        (part(5, 0, 9), None),
        (segment(3), Hole(1, 3 * SEGMENT_BYTES, 2, 5_000)),
        (segment(4), Hole(1, 4 * SEGMENT_BYTES, 1, 5_000)),
    ],
)
def test_what_is_missing_is_a_hole_if_more_is_stored_behind_it(
    tmp_path: Path, missing: WalPart, hole: Hole | None
) -> None:
    wal = [segment(2), segment(3), segment(4), part(5, 0, 9)._replace(until_ms=5_000)]
    left = [each for each in wal if each[:3] != missing[:3]]
    found = catalogue(tmp_path / f"{missing.start}", {"20260101T000000Z": base(2)}, left)
    end = found.find_end(found.bases[0])
    assert end.hole == hole
    assert end.missing_ms == (0 if hole is None else 5_000 - base(2).ended_ms)


def test_wal_behind_the_begin_of_a_later_timeline_is_a_hole_too(tmp_path: Path) -> None:
    fork = Fork(2, 1, 4 * SEGMENT_BYTES + 50)
    late = part(4, 0, 80, timeline=2)
    bases = {"20260101T000000Z": base(2)}
    for name, wal, forks in (
        ("whole", [segment(2), segment(3), part(4, 0, 50), late], (fork,)),
        ("segment", [segment(2), part(4, 0, 50), late], (fork,)),
        ("history", [segment(2), segment(3), part(4, 0, 50), late], ()),
    ):
        found = catalogue(tmp_path / name, bases, wal, forks)
        assert (found.find_end(found.bases[0]).hole is None) == (name == "whole"), name


def test_wal_that_a_restore_has_left_is_no_hole(tmp_path: Path) -> None:
    fork = Fork(2, 1, 3 * SEGMENT_BYTES + 50)
    wal = [segment(2), segment(3), segment(4), segment(6), part(3, 0, 80, timeline=2)]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal, (fork,))
    assert found.find_end(found.bases[0]).hole is None


def test_a_base_back_up_of_an_abandoned_timeline_is_neither_restored_nor_kept_in_place_of_a_good_one(
    tmp_path: Path,
) -> None:
    # A restore went back behind the second one, and no other was made since.
    fork = Fork(2, 1, 3 * SEGMENT_BYTES + 50)
    bases = {"20260101T000000Z": base(2), "20260102T000000Z": base(5)}
    wal = [segment(2), segment(3), segment(4), segment(5), part(3, 0, 80, timeline=2)]
    found = catalogue(tmp_path, bases, wal, (fork,))
    assert choose_base(found, None, None).name == "20260101T000000Z"
    assert found.list_superseded(found.sort_bases()[-1:]) == []


def test_a_back_up_without_wal_reaches_to_its_own_end(tmp_path: Path) -> None:
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, [segment(3)])

    assert found.find_end(found.bases[0]).position == base(2).end


def test_a_back_up_reaches_over_a_restore_to_the_newest_timeline(tmp_path: Path) -> None:
    fork = Fork(2, 1, 3 * SEGMENT_BYTES + 50)
    wal = [segment(2), part(3, 0, 99), part(3, 0, 80, timeline=2)]
    bases = {
        "20260101T000000Z": base(2),
        "20260102T000000Z": Completed(1, fork.position + 10, fork.position + 20, 9),
    }
    found = catalogue(tmp_path, bases, wal, (fork,))

    first, abandoned = found.bases
    end = found.find_end(first)
    assert (end.timeline, end.position) == (2, 3 * SEGMENT_BYTES + 80)
    # It was made after the place that the restore went back to.
    assert found.find_end(abandoned).timeline == 1


def test_a_base_back_up_that_was_not_completed_is_none(tmp_path: Path) -> None:
    FolderStore(tmp_path).put("7/base/20260101T000000Z/data.age", b"half")
    found = catalogue(tmp_path, {"20260102T000000Z": base(2)}, [])

    assert [each.name for each in found.bases] == ["20260102T000000Z"]
    assert [each.name for each in found.unfinished] == ["7/base/20260101T000000Z/data.age"]


def test_what_only_older_back_ups_need_is_removed(tmp_path: Path) -> None:
    wal = [segment(1), segment(2), segment(3), part(2, 0, 9), segment(4), part(5, 0, 9)]
    bases = {f"2026010{number}T000000Z": base(number) for number in (1, 3, 4)}
    FolderStore(tmp_path).put("7/base/20260102T000000Z/data.age", b"half")
    found = catalogue(tmp_path, bases, wal)

    assert found.list_superseded(found.bases[-3:]) == []
    removed = found.list_superseded(found.bases[-2:])
    FolderStore(tmp_path).delete(removed)
    left = read_catalogue(FolderStore(tmp_path), "7")
    assert [each.name for each in left.bases] == ["20260103T000000Z", "20260104T000000Z"]
    assert [each.part for each in left.wal] == [segment(3), segment(4), part(5, 0, 9)]
    assert left.unfinished == []
    # The mark of completeness goes before the data.
    assert removed[0].split("/")[-1].startswith("complete.")


def test_a_restore_gets_whole_segments_and_the_parts_of_the_last(tmp_path: Path) -> None:
    # `up` was started again while it wrote segment 3, and stored it from its beginning.
    wal = [segment(1), segment(2), part(2, 0, 9), part(3, 0, 9), part(3, 4, 8), part(3, 0, 7), part(3, 9, 12)]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal)

    assert [each.part for each in found.list_needed(found.bases[0])] == [
        segment(2),
        part(3, 0, 9),
        part(3, 9, 12),
    ]


def test_a_restore_gets_nothing_of_timelines_that_it_does_not_follow(tmp_path: Path) -> None:
    fork = Fork(2, 1, 3 * SEGMENT_BYTES + 50)
    wal = [segment(2), segment(3), segment(4), part(3, 0, 80, timeline=2), part(5, 0, 9, timeline=7)]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal, (fork, Fork(7, 5, 9)))

    needed = [each.part for each in found.list_needed(found.bases[0])]
    assert needed == [segment(2), segment(3), part(3, 0, 80, timeline=2)]


def test_strange_names_are_left_out_and_named(tmp_path: Path) -> None:
    strange = [
        "7/base/20260101T000000Z/complete.9.0000000000000000.0000000000000001.1.age",
        "7/base/20260102T000000Z/complete.1.0000000000000000.0000000000000001.999999999999999.age",
        "7/base/20260102T000000Z/complete.1.0000000000000009.0000000000000001.1.age",
        "7/base/20260231T000000Z/data.age",
        "7/base/complete.1.0000000000000000.0000000000000001.1.age",
        "7/base/yesterday/data.age",
        "7/history/02.1.0000000000000050.age",
        # It would be followed for ever.
        "7/history/1.1.0000000000000050.age",
        "7/history/2.3.0000000000000050.age",
        "7/history/9999999999.1.0000000000000050.age",
        "7/history/\u0662.1.0000000000000050.age",
        "7/nothing",
        "7/wal/000000000000000000000003.age",
        "7/wal/0000000100000000000001FF.age",
        "7/wal/000000010000000000000003.00000000-01000000.age",
        "7/wal/000000010000000000000003.00000000-f0000000.age",
        "7/wal/000000010000000000000003.00000009-00000008.age",
        "7/wal/a/000000010000000000000003.age",
        "7/wal/x.age",
        os.fsdecode(b"7/wal/\xff.age"),
    ]
    for name in (*strange, "lost+found/x", "notes"):
        FolderStore(tmp_path).put(name, b"x")
    wal = [segment(2), part(3, 0, 9)]
    found = catalogue(tmp_path, {"20260101T000000Z": base(2)}, wal)

    assert found.strange == sorted(strange)
    assert [each.name for each in found.bases] == ["20260101T000000Z"]
    assert [each.part for each in found.wal] == wal
    assert found.find_end(found.bases[0]).position == 3 * SEGMENT_BYTES + 9
    assert list_systems(FolderStore(tmp_path)) == (["7"], ["lost+found/x", "notes"])
