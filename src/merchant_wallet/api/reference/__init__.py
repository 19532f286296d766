"""The description of the interface: every field, bound, code and callback, and its OpenAPI document.

fields: a field, its types and patterns · operations, callbacks, refusals: the tables ·
schemas, openapi: the document · examples.json: requests and answers of a real run.

Rules:
- The tables only describe. The checks are in `operations`; tests hold each row against them.
- A field, a code or an operation that is not described fails a test.
- Texts are Markdown. Their links lead into the merchants' guide.
"""
