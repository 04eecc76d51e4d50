"""The relaxed threat model: laws of the length of a noisy output, and questions on them.

The adversary does not know the record, so he cannot test against the shifted law; he rejects the
law without the record if the output is far from its centre.  P is the law of the distance without
the record, Q that with it.  Their likelihood ratio increases with the distance, so threshold tests
are optimal among tests of the distance.
"""
