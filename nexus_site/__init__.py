"""Wiring only: settings, urls, server, worker, and what starts and stops them."""
