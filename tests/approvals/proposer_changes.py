"""Changes after which the proposer Ann could not propose any more."""

from typing import Final

import pytest

PROPOSER_CHANGES: Final = [
    pytest.param("update operator set status = 'disabled'", id="disabled"),
    pytest.param("update operator set role = 'auditor'", id="lost the right"),
    pytest.param("insert into operator_wait values ('ann', 1001, 5000, 'reset')", id="reset"),
]
