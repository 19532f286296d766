"""Signing of checkpoints. Workers and the command line have the private key.

The web process never imports this package.

- signing: sign checkpoints and append them to their files
- keys: where the private key is, and whether it is the service's
- task: what the worker does each minute
- acceptance: a person accepts a rollback
- former_keys: the public keys that were replaced
- evidence_files: files of checkpoints that are kept as evidence
"""
