"""The last refused requests of each merchant, for the developers of its client: buffered, stored, listed."""
