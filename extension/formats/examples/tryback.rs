#![allow(warnings)]
use warpgauge_formats::{event::*, finding::*, gpu_flight::*, join::*, lines::Lines, tables};
struct F;
impl tables::Tables for F {
    type File = std::fs::File;
    fn open(&mut self, t: tables::Table) -> std::io::Result<Option<std::fs::File>> {
        Ok(std::fs::File::open(format!("/tmp/pq/{}.parquet", t.name())).ok())
    }
}
struct Files(Vec<std::fs::File>, u64);
impl Channels for Files {
    fn write(&mut self, c: Channel, l: &[u8]) {
        use std::io::Write;
        self.1 += l.len() as u64;
        self.0[c as usize].write_all(l).unwrap();
    }
}
struct S(Fat, Files);
impl Sink for S {
    fn event(&mut self, _: u64, e: &Event<'_>) {
        self.0.write(e, &mut self.1);
    }
    fn finding(&mut self, f: Finding) {
        println!("{f}");
    }
    fn unknown(&mut self, _: u64, n: &str) {}
}
fn main() {
    let files = ["device", "scope", "system"]
        .map(|c| std::fs::File::create(format!("/tmp/back.{c}.log")).unwrap())
        .into();
    let mut s = S(Fat::new(), Files(files, 0));
    tables::read(&mut F, &mut s).unwrap();
    for (n, c) in s.0.losses().iter() {
        println!("{n} {c}")
    }
    println!("{}", s.1.1);
}
