"""`manage.py demo`: one day of the NEXUS company, played over HTTP against `make up`."""
