/* Tails of the noncentral chi-squared distribution that other libraries round to 0.
 *
 * python -c "import pyengine, os; print(pyengine.get_include(), os.path.dirname(pyengine.get_library()))"
 * cc tails.c -I INCLUDE -L LIBRARY -lpyengine -Wl,-rpath,LIBRARY -o tails
 */
#include <libpyengine.h>

#include <stdio.h>

int main(void) {
    if (!PYENGINE_IS_COMPATIBLE()) {
        fprintf(stderr, "libpyengine is older than the header\n");
        return 1;
    }
    for (double x = 500.0; x <= 4000.0; x += 500.0)
        printf("%5.0f  %.17g  %.17g\n", x, pyengine_ncx2_sf(x, 10.0, 30.0),
               pyengine_ncx2_logsf(x, 10.0, 30.0));
    return 0;
}
