"""Acts that people ask for and workers carry out, and what workers report of what only they can see.

Web processes have no private keys and reach no nodes. So a page only writes down what is asked (`asked`). A
worker claims it and carries it out (`worker`). It writes down what it sees of nodes and keys (`reports`).
"""
