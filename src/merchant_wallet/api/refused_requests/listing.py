"""Lists a merchant's refused requests, and the string that each should have signed.

Rules: there is no secret here, so this module can't check a signature. It says what had to be signed.
"""

import msgspec
from psycopg import AsyncConnection

from merchant_wallet.api.refused_requests.buffer import KEPT, QUERIES
from merchant_wallet.base.signing import MD5, Method, build_md5_string_to_sign, build_string_to_sign
from merchant_wallet.base.units import MAX_BIGINT


class RefusedRequest(msgspec.Struct, frozen=True):
    """A refused request: when, why, from where, and its fields in the order they were sent.

    `left_out` names the fields that are not stored completely: of `sign` the beginning, of others nothing.
    """

    refused_no: int
    at_ms: int
    request_id: str
    path: str
    code: int
    msg: str
    source: str
    content_type: str
    fields: dict[str, str | None]
    left_out: list[str]

    def signed_text(self, method: Method) -> str | None:
        """The string that the request had to sign. None if not all of its fields are stored, or none."""
        covered = {name: text for name, text in self.fields.items() if name != "sign"}
        texts = {name: text for name, text in covered.items() if text is not None}
        if len(texts) < len(covered) or not self.fields:
            return None
        return build_md5_string_to_sign(texts) if method == MD5 else build_string_to_sign(self.path, texts)


async def list_refused(
    conn: AsyncConnection,
    merchant_id: int,
    *,
    before_no: int | None = None,
    limit: int = KEPT,
    is_signed: bool | None = None,
) -> list[RefusedRequest]:
    """A merchant's last refused requests, newest first: all, or the signed or the unsigned ones.

    The next page begins before the last one's number. Raises ValueError for a limit outside of 1 to 100.
    """
    if not 1 <= limit <= KEPT:
        raise ValueError(f"A page has 1 to {KEPT} requests.")
    values = {
        "merchant_id": merchant_id,
        "before_no": MAX_BIGINT if before_no is None else before_no,
        "page": limit,
        "is_signed": is_signed,
    }
    rows = await (await conn.execute(QUERIES["list_refused"].text, values)).fetchall()
    return [RefusedRequest(*row) for row in rows]
