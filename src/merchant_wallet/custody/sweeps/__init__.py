"""Sweeps: moving the token from deposit addresses to the hot wallet, for at most a set share of the amount.

`plan` decides (pure), `survey` asks the chain, `store` has the SQL, and `worker` executes. A sweep concerns
no book: the money is in the platform's custody before and after.
"""
