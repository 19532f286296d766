"""The exchange of a merchant's two currencies: the operator's rates, and the operation.

Rules: what an exchange does to a book is the book's own rule; here is who may set what rate, and the wire.
"""
