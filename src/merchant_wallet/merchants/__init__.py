"""Who may call: merchants, their settings and their secrets.

Rules: `records` is pure; `keys` seals and derives; `store` is the only one with SQL. A change of anything
that a request depends on raises the settings' version in its own commit, so that it holds from the next
request on.
"""
