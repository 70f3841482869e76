#![allow(warnings)]
use warpgauge_formats::{event::*, finding::*, gpu_flight::*, join::*, lines::Lines, tables};
struct F;
impl tables::Files for F {
    type File = std::fs::File;
    fn create(&mut self, t: tables::Table) -> std::io::Result<std::fs::File> {
        std::fs::create_dir_all("/tmp/pq")?;
        std::fs::File::create(format!("/tmp/pq/{}.parquet", t.name()))
    }
}
struct S(tables::Writer<F>);
impl Sink for S {
    fn event(&mut self, _: u64, e: &Event<'_>) {
        self.0.write(e).unwrap();
    }
    fn finding(&mut self, f: Finding) {
        println!("{f}");
    }
    fn unknown(&mut self, _: u64, n: &str) {}
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut s = S(tables::Writer::new(F));
    let mut sc = SampleScopes::default();
    for p in &a[1..] {
        let mut r = Reader::new();
        let mut l = Lines::new(std::fs::File::open(p).unwrap());
        let mut b = sc.before(&mut s);
        while let Some(x) = l.next().unwrap() {
            r.line(x.number, x.bytes, &mut b);
        }
        r.end(&mut b);
    }
    s.0.finish().unwrap();
}
