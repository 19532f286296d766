"""The HTTP interface of merchants: from the bytes of a request to the bytes of its answer.

connection: HTTP/1.1 on one socket · admission: limits before a request is read · endpoint: one request ·
gate: who calls, fresh and signed · operation, operations: the eight calls · scheduler: writes beside reads ·
wire, amounts: JSON structs and their bounds · refused_requests, debugger: help for integrators.

Rules: an operation turns a request into a command of the book and its outcome into an answer. It decides
nothing about money.
"""
