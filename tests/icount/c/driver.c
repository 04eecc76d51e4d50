/* Runs each kernel in a child of its own, beside a child that only prepares.
 *
 * Under cachegrind each child writes its count, which begins with what its parent had; so the
 * difference of the two is what the work took.  "nothing" is the driver's own share in it.  Prints a
 * line "name pid-without pid-with" for each kernel, or "name failed status".
 */
#include "driver.h"

#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static const icount_kernel *failed;

static pid_t child(const icount_kernel *kernel, int with_work) {
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        kernel->prepare();
        if (with_work) kernel->run();
        _exit(EXIT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        printf("%s failed with status %d\n", kernel->name, status);
        failed = kernel;
    }
    return pid;
}

static void measure(const icount_kernel *kernel) {
    failed = NULL;
    const pid_t without = child(kernel, 0);
    const pid_t with = failed ? 0 : child(kernel, 1);
    if (!failed) printf("%s %ld %ld\n", kernel->name, (long)without, (long)with);
    fflush(stdout);
}

static void nothing(void) {}

int main(void) {
    const icount_kernel none = {"nothing", nothing, nothing, NULL};
    measure(&none); /* the first call of a function of the C library may be dearer than others */
    measure(&none);
    for (const icount_kernel *kernel = icount_first(); kernel != NULL; kernel = kernel->next) measure(kernel);
    return EXIT_SUCCESS;
}
