"""What an adversary gains: membership, reconstruction by earlier bounds, risks in words, priors."""
