/* Functions of the normal distribution for other files of the core. */
#ifndef PE_NORMAL_H
#define PE_NORMAL_H

/* Error below PE_ULP_ERFC units of 2^-52 of itself (tools/prove_normal.py), where it is a normal number */
double pe_erfc(double x);

/* phi(x)/Phi(-x) - x for x >= 0: the excess of the hazard rate over its argument. */
double pe_normal_excess(double x);

/* Mills' ratio m(t) = Phi(-t)/phi(t) for t >= -38. */
double pe_mills(double t);

/* m(t) - m(t + step) for step > 0, t >= -38.  Relative error a few units of 2^-52: a quadrature of the
 * derivative where the step is short, else from the excess of 1/m over t. */
double pe_mills_difference(double t, double step);

#endif
