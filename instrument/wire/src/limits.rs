//! Every bound of the protocol, in one place.

use std::time::Duration;

/// The longest line a reader accepts, in bytes, without its line end.
pub const MAX_LINE_BYTES: usize = 256;

/// The largest measurement file a reader consumes, in bytes.
pub const MAX_MEASUREMENT_FILE_BYTES: u64 = 64 << 20;

/// The largest runtime configuration a reader accepts, in bytes.
pub const MAX_RUNTIME_CONFIG_BYTES: u64 = 16 << 20;

/// How many lines one flush writes at most for each of the percentages (ids 1 to 3).
pub const MAX_LINES_PER_ID: usize = 1_000;

/// How often the instrument looks at the runtime configuration unless told otherwise.
pub const DEFAULT_POLLING_INTERVAL: Duration = Duration::from_secs(10);

/// The shortest polling interval that is honoured.
pub const MIN_POLLING_INTERVAL: Duration = Duration::from_secs(1);
