#![allow(warnings)]
use std::io::Write;
use warpgauge_formats::{event::*, finding::*, gpu_flight::*, lines::Lines};
struct Count(u64, u64, u64, Option<Columnar>, Files);
struct Files(Vec<std::fs::File>, u64);
impl Channels for Files {
    fn write(&mut self, c: Channel, l: &[u8]) {
        self.1 += l.len() as u64;
        self.0[c as usize].write_all(l).unwrap();
    }
}
impl Sink for Count {
    fn event(&mut self, _: u64, e: &Event<'_>) {
        self.0 += 1;
        if let Some(w) = &mut self.3 {
            w.write(e, &mut self.4)
        }
    }
    fn finding(&mut self, f: Finding) {
        self.1 += 1;
        if self.1 < 5 {
            println!("{f}")
        }
    }
    fn unknown(&mut self, _: u64, n: &str) {
        self.2 += 1;
        if self.2 < 5 {
            println!("unknown {n}")
        }
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let out = a[1] == "convert";
    let files = ["device", "scope", "system"]
        .map(|c| std::fs::File::create(format!("/tmp/out.{c}.log")).unwrap())
        .into();
    let mut sink = Count(0, 0, 0, out.then(|| Columnar::new(Details::First)), Files(files, 0));
    for path in &a[2..] {
        let t = std::time::Instant::now();
        let mut r = Reader::new();
        let mut g = warpgauge_formats::gpumon::Reader::new(Default::default());
        let mut lines = Lines::new(std::fs::File::open(path).unwrap());
        let mut bytes = 0;
        while let Some(l) = lines.next().unwrap() {
            bytes += l.bytes.len();
            if a[1] == "gpumon" {
                g.line(l.number, l.bytes, &mut sink)
            } else {
                r.line(l.number, l.bytes, &mut sink);
            }
        }
        r.end(&mut sink);
        let s = t.elapsed().as_secs_f64();
        println!(
            "{path} {} MB {:.0} MB/s events {} findings {} unknown {}",
            bytes / 1000000,
            bytes as f64 / 1e6 / s,
            sink.0,
            sink.1,
            sink.2
        );
    }
    if let Some(mut w) = sink.3.take() {
        w.flush(&mut sink.4);
        for (n, c) in w.losses().iter() {
            println!("{n} {c}")
        }
        println!("out {}", sink.4.1);
    }
}
