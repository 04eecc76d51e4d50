/* C interface of the numerical core.
 *
 * No globals, no printing, no Python.  Array forms are serial and elementwise: out[i] has the same bits as the scalar form at x[i], whatever n is, and
 * out may be equal to x.  NaN in gives NaN out; an argument outside the domain gives NaN.
 */
#ifndef PYENGINE_H
#define PYENGINE_H

#include "answers.h"
#include "contours.h"
#include "functions.h"
#include "kinds.h"
#include "laws.h"
#include "types.h"

#endif
