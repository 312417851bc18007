"""`manage.py bench`: our rates beside PostgreSQL's own and beside the floor, in the same run."""
