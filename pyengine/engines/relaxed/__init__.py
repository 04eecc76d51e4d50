"""The relaxed threat model: laws of the length of a noisy output, and what answers for them.

The adversary does not know the record, so he cannot test against the shifted law; he rejects the
law without the record when the output lies far from where that law has its centre.  P is the law of
the distance without the record, Q the one with it.  Both have a monotone likelihood ratio in the
distance, so the threshold test is the best one that looks at nothing else.
"""
