"""People of the installation: the organisations they belong to, the passwords they were given."""
