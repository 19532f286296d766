"""Deposits: what arrives on the chains, seen, settled and credited.

`watcher` follows a chain and writes down what reaches an address of ours (`deposit_store`); `crediting` asks
the books to credit what is final. `sandbox_deposits` is the memory of the sandbox's chains. What people see
of deposits is in `reporting.deposits`.
"""
