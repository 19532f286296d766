"""Private keys: the keystore, the signer, and the rules for what it signs.

Rules: only the worker side and the command line import this package. A key never leaves the signer.
"""
