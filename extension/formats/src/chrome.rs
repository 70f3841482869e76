//! Chrome's trace event format: JSON that `chrome://tracing` and Perfetto draw.
//!
//! ```text
//! {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.500,"dur":0.010,
//!  "bind_id":"0x9c","flow_in":true,                          an arrow's end on the slice itself
//!  "args":{"stream":7,"correlation":35,...,"flow_id":35,"flow_type":"ac2g","flow_start":false}}
//! {"ph":"X",...,"tid":"7 (lane 2)","lane_of":7,...}          what overlaps another partly
//! {"ph":"C","name":"power [W]","id":"device 0","device":0,"unit":"W","pid":0,"ts":2.000,
//!  "args":{"total":71.5}}                                    a counter with unit and device
//! {"ph":"i","name":"[memory]",...} {"ph":"C","name":"memory allocated (device 0)",...}
//! ```
//!
//! The records are Kineto's, and [`kineto::read`](crate::kineto::read) reads them back as they were;
//! beside them stands what Kineto's form has no place for. Viewers drop a slice that overlaps another
//! partly on one row, so such a slice gets a row of its own (a lane). To find these, records wait in
//! a window; they are written in the order in which they came.

mod records;
mod window;
mod write;

pub use window::DEFAULT_WINDOW;
pub use write::Writer;
