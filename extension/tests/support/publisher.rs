//! Writers of measurement files that keep to the protocol and never wait for anybody.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::kills::Dice;
use super::world::{World, name_for, write};

/// What was published, to be compared with what arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) files: u64,
    pub(crate) lines: u64,
    pub(crate) instructions: u64,
    pub(crate) launches: u64,
}

impl Published {
    pub(crate) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.instructions += other.instructions;
        self.launches += other.launches;
    }
}

/// A thread that publishes for one process.
pub(crate) struct Publisher {
    pub(crate) pid: u32,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Published>,
}

impl Publisher {
    /// Starts to publish, some fifty files a second: instructions, occupancies and launches.
    pub(crate) fn start(world: &World, pid: u32, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let folder = world.measurements();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || publish(folder, pid, &mut Dice::new(seed), &stopped));
        Self { pid, stop, thread }
    }

    /// Ends after the file that it is writing.
    pub(crate) fn stop(self) -> Published {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn publish(folder: PathBuf, pid: u32, dice: &mut Dice, stopped: &AtomicBool) -> Published {
    let mut published = Published::default();
    while !stopped.load(Ordering::SeqCst) {
        let (content, file) = flush(dice);
        let name = name_for(pid);
        let unfinished = folder.join(format!(".{name}"));
        write(&unfinished, content);
        std::fs::rename(unfinished, folder.join(name)).unwrap();
        published.add(file);
        thread::sleep(Duration::from_millis(dice.below(40)));
    }
    published
}

/// One file's content, and what it adds.
fn flush(dice: &mut Dice) -> (String, Published) {
    use std::fmt::Write as _;
    let mut content = String::new();
    let mut file = Published { files: 1, ..Published::default() };
    for _ in 0..=dice.below(3) {
        let instructions = dice.below(1_000_000);
        writeln!(content, "0:{instructions}").unwrap();
        file.instructions += instructions;
        file.lines += 1;
    }
    for _ in 0..dice.below(4) {
        writeln!(content, "1:{}", dice.below(101)).unwrap();
        file.lines += 1;
    }
    file.launches = dice.below(100_000);
    writeln!(content, "4:{}", file.launches).unwrap();
    file.lines += 1;
    (content, file)
}
