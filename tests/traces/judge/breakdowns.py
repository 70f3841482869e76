"""What HolisticTraceAnalysis computes of a trace."""

import logging
import os
import pathlib
import warnings

# Without this it rounds every time to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from hta.trace_analysis import TraceAnalysis  # noqa: E402

ANALYSES = (
    "get_temporal_breakdown",
    "get_gpu_kernel_breakdown",
    "get_idle_time_breakdown",
    "get_cuda_kernel_launch_stats",
)


def breakdowns(path):
    """Every analysis as text; of one that this trace does not allow, the kind of its error."""
    path = pathlib.Path(path)
    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    found = {"kernels": kernels(analysis)}
    for name in ANALYSES:
        try:
            found[name] = as_text(getattr(analysis, name)(visualize=False))
        except Exception as error:  # noqa: BLE001: an answer like any other, to be compared
            found[name] = type(error).__name__
    return found


def kernels(analysis):
    """How many slices on streams it sees, and how long they ran, in nanoseconds."""
    rows = analysis.t.get_trace(0)
    rows = rows[rows["stream"] >= 0]
    return len(rows), round(float(rows["dur"].sum()) * 1000)


def as_text(result):
    if isinstance(result, dict):
        return {key: as_text(value) for key, value in result.items()}
    if isinstance(result, tuple):
        return tuple(as_text(value) for value in result)
    if not hasattr(result, "to_string"):
        return str(result)
    # Whole microseconds stay whole numbers there if every time of the trace is one.
    numbers = result.select_dtypes("number")
    return result.assign(**numbers.astype(float)).to_string()
