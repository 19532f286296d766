"""How many files this process may open at once: each connection is one."""

import resource


def raise_file_limit(wanted: int) -> int:
    """Raise the soft limit to what is wanted, as far as the hard one lets it; gives what holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if raised > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return max(raised, soft)
