//! Whatever a measurement file holds, and however it is cut into chunks: no panic, the same lines,
//! no value out of its range, and names and manifests that read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge::aggregate::{FileTally, PERCENTAGES, Shape, Tally};
use warpgauge::measurements::manifest;
use warpgauge_wire::{LineReader, MeasurementFileName, Value};

fuzz_target!(|input: (&[u8], usize)| {
    let (file, cut) = input;
    let read = |chunks: &[&[u8]]| {
        let (mut reader, mut lines) = (LineReader::new(), Vec::new());
        for chunk in chunks {
            reader.push(chunk, |number, line| lines.push((number, line)));
        }
        reader.finish(|number, line| lines.push((number, line)));
        lines
    };
    let lines = read(&[file]);
    let (left, right) = file.split_at(cut.min(file.len()));
    assert_eq!(read(&[left, right]), lines);

    let mut tally = FileTally::new(Shape::Exponential);
    for (_, line) in lines {
        let Ok(measurement) = line else { continue };
        if let Value::Percent(percent) = measurement.value {
            assert!((0.0..=100.0).contains(&percent));
        }
        tally.add(measurement);
    }
    let mut sum = Tally::default();
    sum.merge_file(&tally);
    for function in PERCENTAGES {
        if let Some(mean) = sum.percentage(function).and_then(|distribution| distribution.mean()) {
            assert!((0.0..=1.0).contains(&mean));
        }
    }

    if let Ok(name) = MeasurementFileName::parse(file) {
        assert_eq!(name.to_string().as_bytes(), file);
    }
    let counted = manifest::parse(file);
    assert_eq!(manifest::parse(&manifest::render(&counted)), counted);
    let refused = manifest::parse_refused(file);
    assert_eq!(manifest::parse_refused(&manifest::render_refused(&refused)), refused);
});
