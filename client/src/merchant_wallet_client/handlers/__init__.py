"""Endpoints for callbacks in Starlette and FastAPI, Django and Flask. Each framework has its module.

`store` is your own function. It must have stored the callback when it returns, and must ignore an `event_id`
that it has stored before.

Rules:
- A callback is stored before it is answered with `success`. If `store` fails, the framework answers 500, and
  the service sends the callback again.
- A body that is no genuine callback is answered with 400 and is not stored.
"""
