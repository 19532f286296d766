"""The generated parts of the documents, from the code's own tables and from a run of the service."""
