"""`manage.py bench`: our rates, PostgreSQL's own and the floor, measured in the same run."""
