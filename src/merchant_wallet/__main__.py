"""`python -m merchant_wallet`: the command line."""

from merchant_wallet.cli import main

main()
