"""A PDF document as a download, built after its page has given its database connections back.

Rules:
- One thread builds all documents of a process, so they wait for each other. While they wait, they hold no
  connection: other pages go on.
- One person has at most `MAX_OF_ONE` documents under way, all people together `MAX_UNDER_WAY`. Any more is
  answered 503, with the time after which to try again.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from merchant_wallet.web.pdf.document import Document, check_length, make_pdf

MAX_OF_ONE: Final = 2
MAX_UNDER_WAY: Final = 20
RETRY_AFTER_S: Final = 5

_under_way: Final[Counter[Hashable]] = Counter()
"""How many documents are under way, by person."""


class PdfDownload(Response):
    """The document as a file. `who` is the person, by whom documents are counted. Raises DocumentTooLong."""

    def __init__(self, who: Hashable, document: Document, name: str, headers: Mapping[str, str]) -> None:
        check_length(document)
        own = {"content-type": "application/pdf", "content-disposition": f'attachment; filename="{name}.pdf"'}
        super().__init__(headers={**headers, **own})
        self._who = who
        self._document = document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Build and send it. Raises HTTPException 503 if too many are under way."""
        if _under_way[self._who] >= MAX_OF_ONE or _under_way.total() >= MAX_UNDER_WAY:
            raise HTTPException(503, headers={"retry-after": str(RETRY_AFTER_S)})
        _under_way[self._who] += 1
        try:
            self.body = await make_pdf(self._document)
        finally:
            _under_way[self._who] -= 1
            if not _under_way[self._who]:
                del _under_way[self._who]
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)
