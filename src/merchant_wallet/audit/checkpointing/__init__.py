"""Signing checkpoints, with a key that workers and the command line have and the web side never imports.

signing: the key and the files · keys: where the key is, and that it is the service's · task: what the worker
does each minute · acceptance: a person's word on a rollback.
"""
