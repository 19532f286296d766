"""Rescues: moving another token or coin from a deposit address to an address of the owner's, and finding it.

- `two_person_changes` has what two people decide, `acts` what one person does, `store` the SQL. `opening`
  opens the sweep that carries a rescue out. `sightings` says what a transaction or an address holds.
"""
