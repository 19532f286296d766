"""What each role may do, and for which book."""

from tests.rows import each_row

from merchant_wallet.operators.roles import RIGHTS, Operator, Right, Role, may

SHOP, OTHER = 1001, 1002


def operator(role: str, merchant_id: int | None = None, status: str = "active") -> Operator:
    return Operator(1, "ann", role, merchant_id, status, True, None, None, 0)


@each_row("right", Right)
def test_an_owner_may_do_everything_everywhere(right: Right) -> None:
    assert may(operator("owner"), right)
    assert may(operator("owner"), right, SHOP)


@each_row("right", Right)
def test_an_operator_may_do_everything_but_manage_operators(right: Right) -> None:
    assert may(operator("operator"), right) == (right is not Right.MANAGE_OPERATORS)


@each_row("right", Right)
def test_an_auditor_reads_everything_and_changes_nothing(right: Right) -> None:
    reads = right in (Right.READ, Right.READ_AUDIT, Right.EXPORT)
    assert may(operator("auditor"), right) == may(operator("auditor"), right, SHOP) == reads


@each_row("right", Right)
def test_a_merchants_user_acts_in_its_own_book_alone(right: Right) -> None:
    user = operator("merchant", SHOP)
    own = right in (
        Right.READ,
        Right.EXPORT,
        Right.CANCEL_WITHDRAWAL,
        Right.RESEND_CALLBACK,
        Right.CHANGE_SECRET,
        Right.CHANGE_LOOK,
        Right.RESET_PIN,
        Right.PLAY_SANDBOX,
    )
    assert may(user, right, SHOP) == own
    assert not may(user, right, OTHER)
    assert not may(user, right)


@each_row("role", Role)
@each_row("right", Right)
def test_a_disabled_one_may_nothing(role: Role, right: Right) -> None:
    merchant_id = SHOP if role is Role.MERCHANT else None
    assert not may(operator(role, merchant_id, "disabled"), right, merchant_id)


def test_a_record_that_the_database_would_refuse_has_no_right() -> None:
    assert not may(operator("merchant"), Right.READ)
    assert not may(operator("owner", SHOP), Right.READ, SHOP)
    assert not may(operator("king"), Right.READ)


def test_every_role_is_in_the_table_and_the_logs_tell_merchants_users_apart() -> None:
    assert set(RIGHTS) == set(Role)
    assert operator("owner").actor == "operator:ann"
    assert operator("merchant", SHOP).actor == "merchant:ann"
