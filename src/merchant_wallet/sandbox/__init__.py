"""Test mode: what the sandbox plays for merchants' tests. A live service does not import this package.

`test_values` is the table of values that make an operation, a payout or a callback go wrong. `play` answers
operations with them. `control` and `actions` are the operations `/sandbox/…`, with which tests move money,
orders and deposits. `console_plays` does the same for a page of the console. `played_month` makes up a month
to close, for a command. `listening` streams attempts at callbacks. `callback_sender` and `payouts` are the
worker side. `store` keeps in home what processes tell each other.
"""
