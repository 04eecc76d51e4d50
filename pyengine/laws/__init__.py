"""Laws of the privacy loss of one step, as the engines see them."""
