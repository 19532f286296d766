"""The limit of open files of this process. Each connection is one."""

import resource


def raise_file_limit(wanted: int) -> int:
    """Raise the soft limit to `wanted`, or as far as the hard limit allows. Returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if raised > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return max(raised, soft)
