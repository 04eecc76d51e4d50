"""Engines: each turns an ordered pair of laws into rows of log values with errors."""
