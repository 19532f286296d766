"""PDF documents in English and Chinese: statements, receipts and invoices.

Rules:
- Callers describe a `Document` of plain texts. Nothing in a text is markup.
- The fonts are embedded, so a document looks the same everywhere. `fonts/README.md` names their source.
- A document has a limited number of rows. What is longer is a CSV file.
- It is built in a thread, one at a time. The library is imported with the first document.
- The same document gives the same bytes.
"""
