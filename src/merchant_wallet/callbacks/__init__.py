"""Callbacks tell merchants what became of their orders and deposits: outbox, delivery, allowed targets."""
