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

/* What the library exports. */
struct warpgauge_functions_ {
    void (*scope_begin)(const char *name);
    void (*scope_end)(void);
    void (*mark)(const char *name);
    uint64_t (*range_begin)(const char *name);
    void (*range_end)(uint64_t number);
};

/* One of each in a program or shared object, however many files of it include this. */
__attribute__((weak, visibility("hidden"))) struct warpgauge_functions_ warpgauge_none_;
/* NULL: not asked yet. */
__attribute__((weak, visibility("hidden"))) struct warpgauge_functions_ *warpgauge_found_;

static inline void *warpgauge_open_(const char *variable)
{
    const char *path = getenv(variable);
    /* Another tool's library is not to be loaded before its time. */
    if (path == NULL || strstr(path, "libwarpgauge_instrument") == NULL) {
        return NULL;
    }
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

/* Puts a function where `place` points to. */
static inline int warpgauge_symbol_(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    memcpy(place, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Finds the library, once. */
__attribute__((noinline, unused)) static struct warpgauge_functions_ *warpgauge_find_(void)
{
    struct warpgauge_functions_ *found = NULL;
    struct warpgauge_functions_ *before = NULL;
    int (*attach)(uint32_t) = NULL;
    void *library = dlopen("libwarpgauge_instrument.so", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == NULL) {
        library = warpgauge_open_("CUDA_INJECTION64_PATH");
    }
    if (library == NULL) {
        library = warpgauge_open_("NVTX_INJECTION64_PATH");
    }
    if (library != NULL && warpgauge_symbol_(library, "warpgauge_attach", &attach)
        && attach(WARPGAUGE_VERSION)) {
        found = (struct warpgauge_functions_ *)calloc(1, sizeof *found);
    }
    if (found != NULL
        && !(warpgauge_symbol_(library, "warpgauge_scope_begin", &found->scope_begin)
             && warpgauge_symbol_(library, "warpgauge_scope_end", &found->scope_end)
             && warpgauge_symbol_(library, "warpgauge_mark", &found->mark)
             && warpgauge_symbol_(library, "warpgauge_range_begin", &found->range_begin)
             && warpgauge_symbol_(library, "warpgauge_range_end", &found->range_end))) {
        free(found);
        found = NULL;
    }
    if (found == NULL) {
        found = &warpgauge_none_;
    }
    /* Another thread may have come first; then its answer stands. */
    if (!__atomic_compare_exchange_n(&warpgauge_found_, &before, found, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (found != &warpgauge_none_) {
            free(found);
        }
        found = before;
    }
    return found;
}

/* The functions; NULL where the process has no such library. */
static inline struct warpgauge_functions_ *warpgauge_functions_(void)
{
    struct warpgauge_functions_ *found = __atomic_load_n(&warpgauge_found_, __ATOMIC_ACQUIRE);
    if (found == NULL) {
        found = warpgauge_find_();
    }
    return found == &warpgauge_none_ ? NULL : found;
}

/* Whether the process has the library. Whether it writes a log is the settings' matter. */
static inline int warpgauge_is_there(void)
{
    return warpgauge_functions_() != NULL;
}

/* Begins a scope on this thread. Scopes of a thread lie within each other. */
static inline void warpgauge_scope_begin(const char *name)
{
    struct warpgauge_functions_ *functions = warpgauge_functions_();
    if (functions != NULL) {
        functions->scope_begin(name);
    }
}

/* Ends the last scope that was begun on this thread. */
static inline void warpgauge_scope_end(void)
{
    struct warpgauge_functions_ *functions = warpgauge_functions_();
    if (functions != NULL) {
        functions->scope_end();
    }
}

/* Marks a point in time. */
static inline void warpgauge_mark(const char *name)
{
    struct warpgauge_functions_ *functions = warpgauge_functions_();
    if (functions != NULL) {
        functions->mark(name);
    }
}

/* Begins a range that any thread may end, by the number that this gives: 0 where nobody listens. */
static inline uint64_t warpgauge_range_begin(const char *name)
{
    struct warpgauge_functions_ *functions = warpgauge_functions_();
    return functions == NULL ? 0 : functions->range_begin(name);
}

/* Ends a range; 0 is no range, and nothing happens. */
static inline void warpgauge_range_end(uint64_t number)
{
    struct warpgauge_functions_ *functions = number == 0 ? NULL : warpgauge_functions_();
    if (functions != NULL) {
        functions->range_end(number);
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
