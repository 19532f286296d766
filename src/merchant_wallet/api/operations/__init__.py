"""The eight calls of the interface: fields in, a command of the book, its outcome as fields out."""
