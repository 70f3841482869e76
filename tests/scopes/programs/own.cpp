// A program that uses warpgauge.h in C++.
#include "warpgauge.h"

#include <stdexcept>

static void throws()
{
    warpgauge::scope scope{"left by an exception"};
    throw std::runtime_error("on purpose");
}

int main()
{
    warpgauge::scope whole{"whole"};
    try {
        throws();
    } catch (const std::exception &) {
        WARPGAUGE_SCOPE("caught");
    }
}
