/* The other half of own.c: both share what was found. */
#include "warpgauge.h"

void other_file(void);

void other_file(void)
{
    WARPGAUGE_SCOPE("in another file");
}
