"""Django's PostgreSQL backend, which starts the embedded server when the first query needs it."""
