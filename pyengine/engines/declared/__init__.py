"""What each engine declares: when it is considered, what it supports, and how it is asked."""
