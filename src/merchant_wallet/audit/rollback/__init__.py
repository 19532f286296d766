"""Detection of a database that was rolled back, and what stops until a person has accepted it."""
