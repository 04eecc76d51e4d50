"""Noncentral chi-squared laws, and lengths that follow them."""
