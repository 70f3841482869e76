"""Scopes for warpgauge: a program says what it is doing.

    import warpgauge

    with warpgauge.scope("epoch"):          # on this thread, within the scope around it
        ...

    @warpgauge.scope("load batch")          # every call
    def load(): ...

    warpgauge.mark("checkpoint written")

    number = warpgauge.range_begin("request")   # may end on another thread
    warpgauge.range_end(number)

In a process that has libwarpgauge_instrument.so, by CUDA_INJECTION64_PATH, by NVTX_INJECTION64_PATH
or loaded otherwise, importing this module finds it. Everywhere else nothing happens. Names are kept
once for the life of the process, so put numbers elsewhere. One file, Python 3.8 or later, nothing
but the standard library; copy it beside your program.
"""

import ctypes
import functools
import os

__all__ = ["is_there", "mark", "range_begin", "range_end", "scope"]

_VERSION = 1


def _find():
    # One that is in the process already, whoever loaded it (RTLD_NOLOAD, dlopen(3)).
    candidates = [("libwarpgauge_instrument.so", os.RTLD_LAZY | os.RTLD_NOLOAD)]
    for variable in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        path = os.environ.get(variable, "")
        # Another tool's library is not to be loaded before its time.
        if "libwarpgauge_instrument" in path:
            candidates.append((path, os.RTLD_LAZY))
    for path, mode in candidates:
        try:
            # Calls are too short to hand the interpreter's lock around them.
            library = ctypes.PyDLL(path, mode=mode)
            attach = library.warpgauge_attach
        except (OSError, AttributeError):
            continue
        attach.argtypes, attach.restype = [ctypes.c_uint32], ctypes.c_int
        if attach(_VERSION):
            return library
    return None


_library = _find()

if _library is not None:
    for _function, _takes, _gives in (
        (_library.warpgauge_scope_begin, [ctypes.c_char_p], None),
        (_library.warpgauge_scope_end, [], None),
        (_library.warpgauge_mark, [ctypes.c_char_p], None),
        (_library.warpgauge_range_begin, [ctypes.c_char_p], ctypes.c_uint64),
        (_library.warpgauge_range_end, [ctypes.c_uint64], None),
    ):
        _function.argtypes, _function.restype = _takes, _gives


def _bytes(name):
    # What stands after a zero would be cut off; a lone surrogate has no UTF-8.
    return str(name).encode("utf-8", "replace").replace(b"\0", b"\\0")


def is_there():
    """Whether the process has the library. Whether it writes a log is the settings' matter."""
    return _library is not None


class scope:
    """A scope on this thread: for ``with``, or around every call of a function."""

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = None if _library is None else _bytes(name)

    def __enter__(self):
        if _library is not None:
            _library.warpgauge_scope_begin(self._name)
        return self

    def __exit__(self, *_):
        if _library is not None:
            _library.warpgauge_scope_end()
        return False

    def __call__(self, function):
        if _library is None:
            return function

        @functools.wraps(function)
        def within(*arguments, **named):
            with self:
                return function(*arguments, **named)

        return within


def mark(name):
    """Marks a point in time."""
    if _library is not None:
        _library.warpgauge_mark(_bytes(name))


def range_begin(name):
    """Begins a range that any thread may end, and gives its number; 0 where nobody listens."""
    return 0 if _library is None else _library.warpgauge_range_begin(_bytes(name))


def range_end(number):
    """Ends a range; 0 is no range, and nothing happens."""
    if number and _library is not None:
        _library.warpgauge_range_end(number)
