"""`manage.py bench`: our rates compared with PostgreSQL's own and with the floor, in the same run."""
