"""What all rooms use and what knows nothing of privacy: checks, caches, texts, lazy imports."""
