"""Sweeps: moving the token from deposit addresses to the hot wallet, for at most a set share of the amount.

- `plan` decides what to sweep (pure). `survey` asks the chain. `store` has the SQL. `worker` executes.
- `chains.sweeps` is the protocol of a chain that can sweep. `chains.evm.sweeps` and `chains.tron.sweeps`
  implement it. `processes.sweeps` connects them with this package.
- A sweep has no claim. Every change names the version of the sweep that it has read (compare and swap).
- A sweep concerns no book: the money is in the platform's custody before and after.
"""
