"""Bench, demo and simulation: for development; no other room imports it."""
