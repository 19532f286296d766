"""Sweeping: moving the token from deposit addresses to the hot wallet, for less than a set share of it.

`plan` decides (pure), `survey` asks the chain what there is, `store` remembers, `worker` carries out. A sweep
concerns no book: the money is in the platform's custody before and after.
"""
