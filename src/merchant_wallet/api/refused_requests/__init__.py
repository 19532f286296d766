"""The last requests of each merchant that were refused, for whoever writes its client: noted, kept, read."""
