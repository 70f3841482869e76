//! What the writer of batches remembers of a session: its texts, its waiting rows, its open scopes.

use std::collections::{HashMap, HashSet, VecDeque};

use super::Channel;
use super::columnar_batch::Rows;
use super::dictionary::Kind;
use super::rows::Type;
use super::session_lines as lines;
use crate::event::{Phase, Scope, Source};
use crate::interner::Interner;
use crate::json::write::{self, Object};
use crate::loss::Losses;
use crate::time::Timestamp;

/// Bytes of texts that a session may intern.
const DICTIONARY: usize = 8 << 20;

/// Most scopes without an instance of their own that may be open.
const MOST_OPEN: usize = 65_536;

/// The texts of one kind and the channels that have them: one bit for each.
#[derive(Debug)]
struct Texts {
    kind: Kind,
    interner: Interner<Kind>,
    explained: Vec<u8>,
}

/// What the writer remembers of a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    /// Whose it is, as far as its beginning has told.
    told: Source<'static>,
    pub(super) start: Option<Vec<u8>>,
    pub(super) started: u8,
    texts: Vec<Texts>,
    pub(super) batches: Vec<Rows>,
    /// Ids that the rows of each channel use and its file does not explain yet.
    unexplained: Vec<(Channel, Kind, u32)>,
    /// Lines of details that come behind their kernels.
    pub(super) details: Vec<u8>,
    pub(super) detailed: HashSet<i64>,
    /// The beginning of a line of details, and the process that it names.
    opening: (Source<'static>, Vec<u8>),
    pub(super) scopes: Scopes,
}

/// Where a scope stands among the others.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) instance: i64,
    pub(super) depth: i64,
    /// When the scope began that this event ends, where the writer gave it its instance.
    pub(super) began: Option<Timestamp>,
}

/// Gives scopes their instance and depth where the source has none.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    last_instance: i64,
    open: HashMap<String, VecDeque<(i64, Timestamp)>>,
    depth: i64,
}

pub(super) const TYPES: [Type; 6] =
    [Type::Kernel, Type::Copy, Type::Scope, Type::Profile, Type::Host, Type::Device];

impl Session {
    pub(super) fn new(id: &str) -> Self {
        let texts =
            |kind| Texts { kind, interner: Interner::with_limit(DICTIONARY), explained: vec![] };
        Self {
            id: id.to_owned(),
            told: Source::default(),
            start: None,
            started: 0,
            texts: Kind::ALL.map(texts).into(),
            batches: TYPES.map(Rows::new).into(),
            unexplained: vec![],
            details: vec![],
            detailed: HashSet::new(),
            opening: Default::default(),
            scopes: Scopes::default(),
        }
    }

    pub(super) fn rotated(&mut self, channel: Channel) {
        let keep = !(1_u8 << channel.index());
        self.started &= keep;
        for texts in &mut self.texts {
            texts.explained.iter_mut().for_each(|channels| *channels &= keep);
        }
        // Rows that wait will stand in the new file, so that what they use has to be there too.
        for texts in &self.texts {
            for index in 0..texts.interner.len() {
                self.unexplained.push((channel, texts.kind, index));
            }
        }
    }

    /// Remembers what the session's first line tells.
    pub(super) fn learn_source(&mut self, source: &Source<'_>) {
        self.told = source.clone().into_owned();
    }

    /// Opens a line of details.
    pub(super) fn open_details(&mut self, source: &Source<'_>) -> Object<'_> {
        // A session has one process as a rule, and a line for each of its kernels.
        let is_known = |(of, opening): &(Source<'_>, Vec<u8>)| !opening.is_empty() && of == source;
        if !is_known(&self.opening) {
            let mut opening = vec![];
            let _open = lines::open(&mut opening, "kernel_detail", source);
            self.opening = (source.clone().into_owned(), opening);
        }
        Object::resume(&mut self.details, &self.opening.1)
    }

    /// Counts what a row cannot tell of its source: rows name the session, and that its process.
    pub(super) fn compare_source(&self, source: &Source<'_>, losses: &mut Losses) {
        if source.pid.is_some() && source.pid != self.told.pid {
            losses.count("event.pid that the session's start does not tell");
        }
        if source.app.is_some() && source.app != self.told.app {
            losses.count("event.app that the session's start does not tell");
        }
    }

    /// The id of a text on a channel, from 1; `None` where the dictionary is full.
    pub(super) fn id(&mut self, channel: Channel, kind: Kind, text: &str) -> Option<i64> {
        let texts = self.texts.get_mut(kind as usize)?;
        let (handle, is_new) = texts.interner.intern(text).ok()?;
        let index = handle.index();
        if is_new {
            texts.explained.push(0);
        }
        let explained = texts.explained.get_mut(index as usize)?;
        let bit = 1_u8 << channel.index();
        if *explained & bit == 0 {
            *explained |= bit;
            self.unexplained.push((channel, kind, index));
        }
        Some(i64::from(index) + 1)
    }

    /// Appends the dictionary line that the channel waits for, if it waits for any.
    pub(super) fn explain(&mut self, channel: Channel, out: &mut Vec<u8>) {
        if !self.unexplained.iter().any(|(of, ..)| *of == channel) {
            return;
        }
        let mut line = write::Object::open(out);
        line.text("type", "dictionary_update").text("session_id", &self.id);
        for texts in &mut self.texts {
            let kind = texts.kind;
            let is_wanted = |entry: &&(Channel, Kind, u32)| entry.0 == channel && entry.1 == kind;
            let mut wanted = self.unexplained.iter().filter(is_wanted).peekable();
            if wanted.peek().is_none() {
                continue;
            }
            let mut table = write::Object::open(line.key(kind.key()));
            for (_, _, index) in wanted {
                let text = texts.interner.nth(*index);
                write::text(table.key(itoa::Buffer::new().format(index + 1)), text);
                if let Some(explained) = texts.explained.get_mut(*index as usize) {
                    *explained |= 1 << channel.index();
                }
            }
            table.close();
        }
        line.close_line();
        self.unexplained.retain(|(of, ..)| *of != channel);
    }

    /// Appends the session's first line where the channel has none.
    pub(super) fn begin(&mut self, channel: Channel, out: &mut Vec<u8>) {
        let bit = 1 << channel.index();
        if self.started & bit == 0
            && let Some(start) = &self.start
        {
            out.extend_from_slice(start);
            self.started |= bit;
        }
    }
}

impl Scopes {
    /// The place of the scope that an event names: its own, or else the next number and the number
    /// of scopes that are open.
    pub(super) fn place(&mut self, scope: &Scope<'_>) -> Place {
        let key = scope.path.as_deref().unwrap_or(&scope.name);
        let open_depth = self.depth;
        let mut began = None;
        let instance = match scope.phase {
            Phase::Begin => {
                self.depth += 1;
                let instance = scope.instance.unwrap_or_else(|| self.next());
                if scope.instance.is_none() && self.open.len() < MOST_OPEN {
                    self.open.entry(key.to_owned()).or_default().push_back((instance, scope.time));
                }
                instance
            }
            Phase::End => {
                self.depth = (self.depth - 1).max(0);
                // Scopes of one path are not within each other, or the inner one's path were longer:
                // they overlap, and the first to begin is the first to end. Names alone nest.
                let begun = self.open.get_mut(key).and_then(|open| match &scope.path {
                    Some(_) => open.pop_front(),
                    None => open.pop_back(),
                });
                if self.open.get(key).is_some_and(VecDeque::is_empty) {
                    self.open.remove(key);
                }
                began = begun.map(|(_, began)| began);
                scope
                    .instance
                    .or(begun.map(|(instance, _)| instance))
                    .unwrap_or_else(|| self.next())
            }
            _ => scope.instance.unwrap_or(0),
        };
        self.last_instance = self.last_instance.max(instance);
        let depth = if scope.phase == Phase::Begin { open_depth } else { self.depth };
        Place { instance, depth: scope.depth.unwrap_or(depth), began }
    }

    fn next(&self) -> i64 {
        self.last_instance.saturating_add(1)
    }
}
