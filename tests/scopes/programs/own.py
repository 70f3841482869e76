"""A program that uses warpgauge.py."""

import threading

import warpgauge


@warpgauge.scope("function")
def function(number):
    """Documented."""
    return number + 1


with warpgauge.scope("outer"):
    assert function(1) == 2 and function.__name__ == "function"
    try:
        with warpgauge.scope("left by an exception"):
            raise KeyError("on purpose")
    except KeyError:
        warpgauge.mark("d\u00e9j\u00e0 vu")
    with warpgauge.scope("a zero \0 in it"):
        pass
number = warpgauge.range_begin("range")
thread = threading.Thread(target=warpgauge.range_end, args=(number,))
thread.start()
thread.join()
print(warpgauge.is_there())
