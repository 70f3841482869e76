//! Whatever a file of telemetry events holds: no panic, and an event that is read is right, and told
//! again by what is written of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge_formats::telemetry::{Fault, Form, Loaded, Options, Place, Sink, TelemetryEvent, load};

#[derive(Default)]
struct Collected(Vec<TelemetryEvent<'static>>);

impl Sink for Collected {
    fn event(&mut self, _: Place, event: &TelemetryEvent<'_>) {
        self.0.push(event.clone().into_owned());
    }

    fn refused(&mut self, _: Place, fault: Fault) {
        assert!(!fault.to_string().is_empty());
    }
}

fuzz_target!(|file: &[u8]| {
    for accept_distributed in [false, true] {
        let options = Options { accept_distributed, ..Options::default() };
        let mut read = Collected::default();
        // What stands before a fault of the file has been read all the same.
        let _ = load(file, None, &options, &mut read);
        let mut list = b"[".to_vec();
        for event in &read.0 {
            event.check().unwrap();
            if list.len() > 1 {
                list.push(b',');
            }
            event.write(&mut list);
        }
        list.push(b']');
        let strict = Options { permissive_legacy: false, ..options };
        let mut again = Collected::default();
        let loaded = load(&*list, None, &strict, &mut again).unwrap();
        let events = read.0.len() as u64;
        assert_eq!(loaded, Loaded { form: Form::List, events, refused: 0 });
        assert_eq!(again.0, read.0);
    }
});
