"""The eight calls of the interface: from fields to a command of the book, and from its outcome to fields."""
