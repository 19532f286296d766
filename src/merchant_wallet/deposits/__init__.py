"""Deposits: transfers to our addresses on the chains, seen, settled and credited.

`watcher` follows a chain and stores its final transfers to our addresses in home (`chain_store`). `intake`
has a cell take them in as deposits (`deposit_store`). `crediting` asks the books to credit final deposits.
`sandbox_deposits` stores the deposits of the sandbox's chains. `reporting.deposits` has the lists that people
see.
"""
