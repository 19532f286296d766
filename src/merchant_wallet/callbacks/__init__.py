"""Telling merchants what became of their orders and deposits: outbox, delivery, where it may go."""
