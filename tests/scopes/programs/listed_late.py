"""A program that is listed after it has said something."""

import os
import time

import warpgauge

runtime_config = os.environ["WARPGAUGE_RUNTIME_CONFIG_PATH"]


def rewrite(lines):
    with open(runtime_config + ".new", "w", encoding="ascii") as file:
        file.write(lines)
    os.rename(runtime_config + ".new", runtime_config)


def number_while(wanted):
    """Waits until a range has a number, which says that somebody listens, or has none."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        number = warpgauge.range_begin("asked")
        warpgauge.range_end(number)
        if (number != 0) == wanted:
            return
        time.sleep(0.01)
    raise TimeoutError(f"nobody begins to listen, or stops: {wanted}")


rewrite("")
number_while(False)
warpgauge.scope("before").__enter__()
rewrite(f"{os.getpid()}:1\n")
number_while(True)
# Its beginning was not heard, so its end is not either.
warpgauge.scope("before").__exit__()
with warpgauge.scope("after"):
    pass
