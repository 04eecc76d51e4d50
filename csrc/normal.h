/* Inside of the C core: what the closed forms need of the normal distribution. */
#ifndef PE_NORMAL_H
#define PE_NORMAL_H

/* Mills' ratio m(t) = Phi(-t)/phi(t) for t >= -38. */
double pe_mills(double t);

/* m(t) - m(t + step) for step > 0, t >= -38.  Relative error a
 * few units of 2^-52 (1 + 1/step): m = 1/(t + e) with e the excess, so nothing cancels but e. */
double pe_mills_difference(double t, double step);

#endif
