"""Notifications: operators are told by e-mail or webhook of what waits for them in the inbox."""
