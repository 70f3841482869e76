/* A program that uses warpgauge.h; half of it is in own_other.c. */
#include "warpgauge.h"

#include <pthread.h>
#include <stdio.h>

void other_file(void);

static int returns_early(int early)
{
    WARPGAUGE_SCOPE("function");
    WARPGAUGE_SCOPE("second in a block");
    if (early) {
        return 1;
    }
    warpgauge_mark("not early");
    return 0;
}

static void *end_range(void *number)
{
    warpgauge_range_end(*(uint64_t *)number);
    return NULL;
}

int main(void)
{
    uint64_t number;
    pthread_t thread;
    warpgauge_scope_begin("outer");
    returns_early(1);
    returns_early(0);
    other_file();
    number = warpgauge_range_begin("range");
    pthread_create(&thread, NULL, end_range, &number);
    pthread_join(thread, NULL);
    warpgauge_scope_end();
    warpgauge_scope_end(); /* one too many */
    warpgauge_mark(NULL);
    printf("%d\n", warpgauge_is_there());
    return 0;
}
