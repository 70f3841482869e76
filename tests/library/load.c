// How long it takes to load a library and to call its entry point, beside an empty one:
//
//   load LIBRARY EMPTY
//
// A library that is never unmapped can be loaded once in a process, so each time is taken in a
// child of its own; the two take turns, so that what else the machine does meets both. Prints the
// median and the 95th percentile in microseconds, and whether the median keeps within the 300
// that the project allows itself. Exit codes: 0 measured, whether or not it keeps within them;
// 1 a library cannot be loaded.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, LIMIT_MICROSECONDS = 300 };

static double now_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// What the driver does inside cuInit.
static double load_and_initialise(const char *path) {
    const double started = now_microseconds();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "load: %s\n", dlerror());
        _exit(1);
    }
    void *symbol = dlsym(library, "InitializeInjection");
    if (symbol == NULL || ((int (*)(void))symbol)() != 1) {
        fprintf(stderr, "load: %s: InitializeInjection is missing or failed\n", path);
        _exit(1);
    }
    return now_microseconds() - started;
}

static double in_a_child(const char *path) {
    int ends[2];
    if (pipe(ends) != 0) exit(1);
    const pid_t child = fork();
    if (child == 0) {
        const double took = load_and_initialise(path);
        // Without handlers: what an exit costs is another question.
        _exit(write(ends[1], &took, sizeof took) == sizeof took ? 0 : 1);
    }
    close(ends[1]);
    double took = 0;
    const int whole = child > 0 && read(ends[0], &took, sizeof took) == sizeof took;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
    if (!whole) exit(1);
    return took;
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double print(const char *what, double *times) {
    qsort(times, ROUNDS, sizeof *times, by_size);
    const double median = times[ROUNDS / 2];
    printf("%-28s median %6.0f us, 95th percentile %6.0f us\n", what, median,
           times[ROUNDS * 95 / 100]);
    return median;
}

int main(int count, char **words) {
    static double ours[ROUNDS], empty[ROUNDS];
    if (count != 3) {
        fprintf(stderr, "load: expected LIBRARY EMPTY\n");
        return 1;
    }
    // libcuda.so.1 needs these, so where the driver loads a library they are there.
    static const char *const drivers[] = {"libdl.so.2", "libpthread.so.0"};
    for (size_t index = 0; index < sizeof drivers / sizeof *drivers; ++index) {
        dlopen(drivers[index], RTLD_NOW | RTLD_LOCAL);
    }
    for (int round = 0; round < ROUNDS; ++round) {
        empty[round] = in_a_child(words[2]);
        ours[round] = in_a_child(words[1]);
    }
    print("an empty library:", empty);
    const double median = print("loaded and initialised:", ours);
    printf("under %d us: %s\n", LIMIT_MICROSECONDS, median < LIMIT_MICROSECONDS ? "met" : "not met");
    return 0;
}
