"""Exchange rates of USDT and KFB, the platform's own unit of account: who may set them, which is in force.

What an exchange does to a book is in `book.rules.exchange`.
"""
