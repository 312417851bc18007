"""What every room shares; no tables."""
