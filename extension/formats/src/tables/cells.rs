//! Rows as lists of cells, between events and columns.

/// One value of a row, or its absence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cell<'a> {
    None,
    Whole(i64),
    Share(f64),
    Text(&'a str),
}

impl From<Option<i64>> for Cell<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::None, Self::Whole)
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Whole(value)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Share)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a Option<crate::event::Text<'_>>> for Cell<'a> {
    fn from(value: &'a Option<crate::event::Text<'_>>) -> Self {
        value.as_deref().map_or(Self::None, Self::Text)
    }
}

/// Takes the cells of a row one after the other, in the order of the columns.
#[derive(Debug)]
pub(super) struct Row<'a, 'c> {
    cells: &'c [Cell<'a>],
    at: usize,
}

impl<'a, 'c> Row<'a, 'c> {
    pub(super) fn new(cells: &'c [Cell<'a>]) -> Self {
        Self { cells, at: 0 }
    }

    fn next(&mut self) -> Cell<'a> {
        let cell = self.cells.get(self.at).copied().unwrap_or(Cell::None);
        self.at += 1;
        cell
    }

    pub(super) fn whole(&mut self) -> Option<i64> {
        match self.next() {
            Cell::Whole(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn share(&mut self) -> Option<f64> {
        match self.next() {
            Cell::Share(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn text(&mut self) -> Option<crate::event::Text<'a>> {
        match self.next() {
            Cell::Text(text) => Some(text.into()),
            _ => None,
        }
    }

    /// Three numbers that are there together.
    pub(super) fn extents(&mut self) -> Option<crate::event::Dim3> {
        let [x, y, z] = [self.whole(), self.whole(), self.whole()];
        Some([x?, y?, z?])
    }
}
