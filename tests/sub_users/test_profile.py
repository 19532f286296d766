"""A sub-user's name and language, in a real database."""

import pytest
from tests.sub_users.books import OTHER, SHOP, add_sub_user

from merchant_wallet.sub_users.activity import read_wallet
from merchant_wallet.sub_users.controls import Connection, SubUserUnknown, read_by_ext_user_id
from merchant_wallet.sub_users.profile import NameRefused, parse_name, rename, set_language

pytestmark = pytest.mark.anyio

ALICE = 101


async def test_a_sub_user_takes_another_name(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    await add_sub_user(conn, "alice", ALICE, OTHER)
    assert await rename(conn, SHOP, ALICE, "  爱丽丝   Müller ") == "爱丽丝 Müller"
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).username == "爱丽丝 Müller"
    assert (await read_by_ext_user_id(conn, OTHER, "alice")).username == "alice"


@pytest.mark.parametrize("name", ["a", "Zoë", "名" * 128, "O'Neil <b>", "😀"])
async def test_people_may_be_called_what_they_are_called(name: str) -> None:
    assert parse_name(name) == name


async def test_a_name_is_kept_in_composed_characters() -> None:
    assert parse_name("Zoe\u0308") == "Zoë"


@pytest.mark.parametrize("name", ["", "   ", "\t\n", "x" * 129])
async def test_a_name_has_1_to_128_characters(name: str) -> None:
    with pytest.raises(NameRefused, match="1 to 128"):
        parse_name(name)


@pytest.mark.parametrize("mark", ["&appKey=", "&eventId=", "&nonceStr=", "&timestamp="])
async def test_no_name_looks_like_a_part_of_a_request(mark: str) -> None:
    with pytest.raises(NameRefused, match="can't be a name"):
        parse_name(f"Zoe{mark}x")
    assert parse_name(f"Zoe {mark[1:]}x") == f"Zoe {mark[1:]}x"
    assert parse_name("R&D=fun") == "R&D=fun"


@pytest.mark.parametrize("mark", ["\0", "\x1b", "\u202e", "\u2066", "\u200b", "\u200f", "\ufeff", "\ud800"])
async def test_nothing_invisible_hides_in_a_name(conn: Connection, mark: str) -> None:
    await add_sub_user(conn, "alice", ALICE)
    with pytest.raises(NameRefused, match="no invisible"):
        await rename(conn, SHOP, ALICE, f"a{mark}b")
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).username == "alice"


async def test_a_language_is_kept_and_forgotten(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    for language in ("zh-CN", "en", None):
        await set_language(conn, SHOP, ALICE, language)
        wallet = await read_wallet(conn, SHOP, ALICE)
        assert wallet is not None
        assert wallet.language == language
    with pytest.raises(ValueError, match="language: one of en, zh-CN"):
        await set_language(conn, SHOP, ALICE, "xx")


async def test_nobody_is_renamed_in_anothers_book(conn: Connection) -> None:
    await add_sub_user(conn, "alice", ALICE)
    with pytest.raises(SubUserUnknown):
        await rename(conn, OTHER, ALICE, "mallory")
    with pytest.raises(SubUserUnknown):
        await set_language(conn, SHOP, 999, "en")
    assert (await read_by_ext_user_id(conn, SHOP, "alice")).username == "alice"
