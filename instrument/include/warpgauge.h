/*
 * Scopes for warpgauge: a program says what it is doing.
 *
 *     warpgauge_scope_begin("epoch");          WARPGAUGE_SCOPE("epoch");          // until the block ends
 *     ...                                      warpgauge::scope scope{"epoch"};   // the same in C++
 *     warpgauge_scope_end();
 *
 * Nothing is linked: in a process that has libwarpgauge_instrument.so, by CUDA_INJECTION64_PATH, by
 * NVTX_INJECTION64_PATH or loaded otherwise, the first call finds it. Everywhere else each call is
 * one look at a variable. Names are UTF-8 and end in a zero; 4096 bytes of them are kept. They are
 * kept once for the life of the process, so put numbers elsewhere. Any thread may call at any time.
 *
 * For Linux, with GCC or clang; glibc before 2.34 wants -ldl.
 */
#ifndef WARPGAUGE_H
#define WARPGAUGE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WARPGAUGE_VERSION 1u

/* What the library exports. One in each program and each shared object, however many files of it
 * include this. */
struct warpgauge_functions {
    int state; /* 0: not asked yet, 1: there is none, 2: found */
    void (*scope_begin)(const char *name);
    void (*scope_end)(void);
    void (*mark)(const char *name);
    uint64_t (*range_begin)(const char *name);
    void (*range_end)(uint64_t number);
};

__attribute__((weak, visibility("hidden"))) struct warpgauge_functions warpgauge_functions;

static inline void *warpgauge_open_(const char *variable)
{
    const char *path = getenv(variable);
    /* Another tool's library is not to be loaded before its time. */
    if (path == NULL || strstr(path, "libwarpgauge_instrument") == NULL) {
        return NULL;
    }
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* Finds the library, once. Two threads that come first together find the same. */
__attribute__((noinline, unused)) static int warpgauge_find_(void)
{
    struct warpgauge_functions *to = &warpgauge_functions;
    int state = 1;
    int (*attach)(uint32_t) = NULL;
    void *library = dlopen("libwarpgauge_instrument.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == NULL) {
        library = warpgauge_open_("CUDA_INJECTION64_PATH");
    }
    if (library == NULL) {
        library = warpgauge_open_("NVTX_INJECTION64_PATH");
    }
    if (library != NULL) {
        /* POSIX promises that a pointer from dlsym() holds a function; C does not. */
        *(void **)&attach = dlsym(library, "warpgauge_attach");
        if (attach != NULL && attach(WARPGAUGE_VERSION)) {
            *(void **)&to->scope_begin = dlsym(library, "warpgauge_scope_begin");
            *(void **)&to->scope_end = dlsym(library, "warpgauge_scope_end");
            *(void **)&to->mark = dlsym(library, "warpgauge_mark");
            *(void **)&to->range_begin = dlsym(library, "warpgauge_range_begin");
            *(void **)&to->range_end = dlsym(library, "warpgauge_range_end");
            state = to->scope_begin && to->scope_end && to->mark && to->range_begin
                            && to->range_end
                        ? 2
                        : 1;
        }
    }
    __atomic_store_n(&to->state, state, __ATOMIC_RELEASE);
    return state == 2;
}

static inline int warpgauge_is_there_(void)
{
    int state = __atomic_load_n(&warpgauge_functions.state, __ATOMIC_ACQUIRE);
    return __builtin_expect(state == 1, 1) ? 0 : state == 2 || warpgauge_find_();
}

/* Begins a scope on this thread. Scopes of a thread lie within each other. */
static inline void warpgauge_scope_begin(const char *name)
{
    if (warpgauge_is_there_()) {
        warpgauge_functions.scope_begin(name);
    }
}

/* Ends the last scope that was begun on this thread. */
static inline void warpgauge_scope_end(void)
{
    if (warpgauge_is_there_()) {
        warpgauge_functions.scope_end();
    }
}

/* Marks a point in time. */
static inline void warpgauge_mark(const char *name)
{
    if (warpgauge_is_there_()) {
        warpgauge_functions.mark(name);
    }
}

/* Begins a range that any thread may end, by the number that this gives: 0 where nobody listens. */
static inline uint64_t warpgauge_range_begin(const char *name)
{
    return warpgauge_is_there_() ? warpgauge_functions.range_begin(name) : 0;
}

/* Ends a range; 0 is no range, and nothing happens. */
static inline void warpgauge_range_end(uint64_t number)
{
    if (number != 0 && warpgauge_is_there_()) {
        warpgauge_functions.range_end(number);
    }
}

static inline void warpgauge_scope_leave_(const int *unused)
{
    (void)unused;
    warpgauge_scope_end();
}

/* A scope until the end of the block, however it is left but by longjmp(). */
#define WARPGAUGE_JOIN_(a, b) a##b
#define WARPGAUGE_NAME_(a, b) WARPGAUGE_JOIN_(a, b)
#define WARPGAUGE_SCOPE(name)                                                                      \
    __attribute__((cleanup(warpgauge_scope_leave_), unused)) const int WARPGAUGE_NAME_(            \
        warpgauge_scope_in_line_, __LINE__) = (warpgauge_scope_begin(name), 0)

#ifdef __cplusplus
} /* extern "C" */

namespace warpgauge {

/* A scope as long as the object lives. */
class scope {
public:
    explicit scope(const char *name) { warpgauge_scope_begin(name); }
    ~scope() { warpgauge_scope_end(); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
};

} // namespace warpgauge
#endif

#endif
