"""Verification: numbers that another program made, beside the truth."""
