"""Reading a book back from its journal and checking every invariant. Pure, apart from `verify`."""
