"""The audit log: who changed what, from where, when; a hash chain that is only ever appended to."""
