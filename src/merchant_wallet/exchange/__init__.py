"""Exchange rates of USDT and KFB: who may set which rate, and which rate is in force.

What an exchange does to a book is in `book.rules.exchange`.
"""
