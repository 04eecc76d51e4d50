"""What an adversary gains: membership, earlier bounds on reconstruction, risks, priors."""
