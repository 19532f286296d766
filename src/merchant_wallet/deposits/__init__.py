"""Deposits: what arrives on the chains, seen, settled and credited.

`watcher` follows a chain and writes down what reaches an address of ours (`sightings`); `crediting` asks the
books to credit what is final; `listing` is what people see of it. `sandbox_arrivals` is the memory of the
sandbox's chains.
"""
