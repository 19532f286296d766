"""Operators: who they are, what they may, and how they prove it with a password and a second factor."""
