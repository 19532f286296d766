"""The audit log: who changed what, from where and when. A hash chain that is only ever appended to."""
