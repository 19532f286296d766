"""The generated parts of the documents, made from the code's own tables and from a run of the service."""
