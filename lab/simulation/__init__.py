"""`manage.py simulate`: a synthetic company against the real services, under a stepped clock."""
