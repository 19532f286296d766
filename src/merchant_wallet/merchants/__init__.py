"""Who may call: merchants, their settings and their secrets.

Rules: `records` is pure. `keys` seals secrets and derives keys. SQL is in `store`, `addresses` and
`xpub_pool`. A change of anything that a request depends on raises the settings' version in the same commit.
So it holds from the next request on.
"""
