//! The files of a conversion, which get their names together.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use warpgauge_formats::gpu_flight::{Channel, Channels};

use super::ConvertError;
use crate::events::input::Packing;
use crate::events::output::{Packer, Unnamed, packing_of};

/// One file, or one for each channel.
pub(crate) struct Sheets {
    sheets: Vec<Sheet>,
    fault: Option<ConvertError>,
    /// What was said last, and to which channel.
    last: Option<(Channel, Vec<u8>)>,
}

struct Sheet {
    packer: Packer,
    place: Place,
}

enum Place {
    Stdout(File),
    Named(Unnamed),
}

impl Sheets {
    /// One file at `out`, packed as its name says, or standard output.
    pub(crate) fn one(out: Option<&Path>) -> Result<Self, ConvertError> {
        let sheet = match out {
            Some(path) => Sheet::named(path, packing_of(path).0)?,
            None => Sheet::stdout()?,
        };
        Ok(Self { sheets: vec![sheet], fault: None, last: None })
    }

    /// A file at each of these places, packed as their names say.
    pub(crate) fn at(paths: &[PathBuf]) -> Result<Self, ConvertError> {
        let sheets = paths.iter().map(|path| Sheet::named(path, packing_of(path).0));
        Ok(Self { sheets: sheets.collect::<Result<_, _>>()?, fault: None, last: None })
    }

    /// `<out>.<channel>.log` for each channel, with the packing's ending of `out` behind, or all of
    /// them on standard output.
    pub(super) fn of_channels(out: Option<&Path>) -> Result<Self, ConvertError> {
        let Some(out) = out else { return Self::one(None) };
        let (packing, _) = packing_of(out);
        let sheets = channel_paths(out).into_iter().map(|path| Sheet::named(&path, packing));
        Ok(Self { sheets: sheets.collect::<Result<_, _>>()?, fault: None, last: None })
    }

    /// Writes to the only file.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        self.write_to(0, bytes)
    }

    /// Writes to the file at that place among the files.
    pub(crate) fn write_to(&mut self, place: usize, bytes: &[u8]) -> Result<(), ConvertError> {
        match self.sheets.get_mut(place) {
            Some(sheet) => sheet.write(bytes),
            None => Ok(()),
        }
    }

    /// The first fault of the channels, once.
    pub(super) fn fault(&mut self) -> Result<(), ConvertError> {
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Writes what waits; nothing more may follow.
    pub(crate) fn finish(self) -> Result<Whole, ConvertError> {
        let mut whole = Whole::default();
        for Sheet { packer, place } in self.sheets {
            let path = place.path();
            packer.finish().map_err(|error| ConvertError::Output { path, error })?;
            whole.places.push(place);
        }
        Ok(whole)
    }

    /// Gives the files their names.
    pub(super) fn place(
        self,
        replace: bool,
        stdout: &mut dyn Write,
    ) -> Result<Vec<PathBuf>, ConvertError> {
        self.finish()?.place(replace, stdout)
    }
}

/// Files that are whole and have no names yet.
#[derive(Default)]
pub(crate) struct Whole {
    places: Vec<Place>,
}

impl Whole {
    /// Takes others along.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.places.append(&mut others.places);
    }

    /// Gives the files their names. Where one is refused, those before it are taken away again,
    /// unless they took the place of others.
    pub(crate) fn place(
        self,
        replace: bool,
        stdout: &mut dyn Write,
    ) -> Result<Vec<PathBuf>, ConvertError> {
        let mut placed = vec![];
        for place in self.places {
            match place {
                Place::Stdout(mut file) => {
                    file.rewind().map_err(ConvertError::Stdout)?;
                    io::copy(&mut file, stdout).map_err(ConvertError::Stdout)?;
                }
                Place::Named(unnamed) => {
                    let path = unnamed.path().to_owned();
                    if let Err(error) = unnamed.name(replace) {
                        if !replace {
                            placed.iter().for_each(|path: &PathBuf| drop(fs::remove_file(path)));
                        }
                        return Err(ConvertError::Output { path, error });
                    }
                    placed.push(path);
                }
            }
        }
        Ok(placed)
    }
}

/// The files of the channels.
pub(super) fn channel_paths(out: &Path) -> [PathBuf; 3] {
    let (packing, prefix) = packing_of(out);
    Channel::ALL.map(|channel| {
        let mut path = prefix.clone().into_os_string();
        path.push(format!(".{}.log", channel.name()));
        match packing {
            Packing::Plain => {}
            Packing::Gzip => path.push(".gz"),
            Packing::Zstd => path.push(".zst"),
        }
        path.into()
    })
}

impl Channels for Sheets {
    fn write(&mut self, channel: Channel, lines: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        if self.sheets.len() == 1 {
            // The beginning and the end of a session are said to each channel; where all go to one
            // place, once is enough.
            if self.last.as_ref().is_some_and(|(last, said)| *last != channel && said == lines) {
                return;
            }
            self.last = Some((channel, lines.to_vec()));
        }
        let place = if self.sheets.len() == 1 { 0 } else { channel as usize };
        if let Some(sheet) = self.sheets.get_mut(place) {
            self.fault = sheet.write(lines).err();
        }
    }
}

impl Sheet {
    fn named(path: &Path, packing: Packing) -> Result<Self, ConvertError> {
        let output = |error| ConvertError::Output { path: path.to_owned(), error };
        let unnamed = Unnamed::create(path).map_err(output)?;
        let packer = Packer::new(packing, unnamed.writer().map_err(output)?).map_err(output)?;
        Ok(Self { packer, place: Place::Named(unnamed) })
    }

    fn stdout() -> Result<Self, ConvertError> {
        let file = tempfile::tempfile().map_err(ConvertError::Stdout)?;
        let writer = file.try_clone().map_err(ConvertError::Stdout)?;
        let packer = Packer::new(Packing::Plain, writer).map_err(ConvertError::Stdout)?;
        Ok(Self { packer, place: Place::Stdout(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ConvertError> {
        let written = self.packer.write_all(bytes);
        written.map_err(|error| ConvertError::Output { path: self.place.path(), error })
    }
}

impl Place {
    fn path(&self) -> PathBuf {
        match self {
            Self::Stdout(_) => "standard output".into(),
            Self::Named(unnamed) => unnamed.path().to_owned(),
        }
    }
}
