"""An operator with a second factor who signs in."""

from dataclasses import dataclass

from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.operators import authentication, records, totp
from merchant_wallet.operators.authentication import Passed, Second, SignIn
from merchant_wallet.operators.records import Connection

NOW_MS = 1_763_712_000_000
GOOD = "seven otters sing"
HOME, AWAY, NEW = "192.0.2.1", "198.51.100.7", "198.51.100.99"


@dataclass
class SignInScene:
    """Ann, an owner with a second factor, and her authenticator."""

    conn: Connection
    keyring: Keyring
    ann: int
    secret: str
    codes: tuple[str, ...]

    async def sign_in(
        self, password: str = GOOD, *, name: str = "ann", source: str = HOME, at_ms: int = NOW_MS
    ) -> SignIn:
        return await authentication.sign_in(self.conn, name, password, source=source, at_ms=at_ms)

    def code(self, at_ms: int) -> str:
        return totp.make_code(self.secret, at_ms // totp.STEP_MS)

    async def confirm(self, code: str, *, source: str = HOME, at_ms: int = NOW_MS) -> Second:
        return await authentication.confirm_totp(
            self.conn, self.keyring, self.ann, code, source=source, at_ms=at_ms, wait_ms=0
        )

    async def recover(self, code: str, *, at_ms: int = NOW_MS) -> Second:
        return await authentication.use_recovery_code(self.conn, self.ann, code, source=HOME, at_ms=at_ms)


EARLIER_MS = NOW_MS - 3_600_000


async def open_scene(conn: Connection, keyring: Keyring) -> SignInScene:
    """Create Ann and set up her second factor."""
    made = await records.create(conn, "ann", "owner", password=GOOD, at_ms=EARLIER_MS)
    ann = made.operator.operator_id
    enrolment = await authentication.begin_enrolment(conn, keyring, ann, issuer="Wallet")
    scene = SignInScene(conn, keyring, ann, enrolment.secret, ())
    passed = await scene.confirm(scene.code(EARLIER_MS), at_ms=EARLIER_MS)
    assert isinstance(passed, Passed)
    scene.codes = passed.recovery_codes
    return scene
