"""The log of signed requests and the use of each merchant: recorded beside the hot path, stored, listed."""
