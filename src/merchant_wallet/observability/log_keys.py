"""Every key that a log line may have. Pure.

Rules: a key has one meaning in all lines, and keeps it: people search by them. A test compares this table
with the calls in the code. docs/operating.md is generated from it.
"""

from typing import Final

ALWAYS: Final = {
    "timestamp": "when, in UTC",
    "level": "`debug`, `info`, `warning`, `error`, or `critical`: an operator must look",
    "event": "what happened, always in the same words",
}
ABOUT: Final = {
    "request_id": "the request, as in its answer's `X-Request-Id`",
    "merchant_id": "the merchant. A request's line has it once the signature is right",
    "order_id": "the withdrawal",
    "user_id": "the sub-user",
    "operator": "the operator who is signed in",
    "path": "the path of the request, without tokens",
    "worker": "the worker whose turn it is: `payer`, `callbacks`, `expiry`, …",
    "cell": "the apart cell",
    "chain": "the chain's code",
    "tx_hash": "the chain's transaction",
    "event_id": "the callback",
    "sweep_id": "the sweep",
    "rescue_no": "the rescue",
    "entry_id": "the journal's entry",
    "trace_id": "the trace, if there are traces",
    "logger": "the library that wrote the line",
    "reason": "why, in words",
    "cause": "why, in words: what an operator is told",
    "error": "why: the error's type and words",
    "exception": "the traceback, without values of variables",
}
"""What a line is about. Most searches need only these."""
DETAILS: Final = """
act_no address advice after_block alarming amount_units answer asked_by attempt_no away_s back_to_block
block blocks_left books cell_id certain channel claimed closed command commands connections content_type
count day days difference_units digest documented dropped entries evidence factor failures fence first
forwarded freezes_wallet_of group has_older host http_status items killed kind last latency_ms limit_s
log_index merchants migration migrations missing month needed newest node nonce notification_no open outcome
pause_s payout peer pid port problem purpose refused remark restorable said screening_no seat side since_ms
skew_s source state status step subject successor task tasks_wait_in timeline topic uid under_way
unexplained_units user variables wallet wrong
"""
"""Further keys, whose meaning follows from the event."""
OF_REQUESTS: Final = {
    "code": "the business code of the answer; of a page the HTTP status",
    "app_key": "the appKey that was sent, also if the signature was wrong",
    "source": "the client's address",
    "took_ms": "how long the request took",
    "at_ms": "when it was answered, in milliseconds since 1970",
}
"""Keys of the lines with the event `request`, besides those above."""
