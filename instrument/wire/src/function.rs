//! What can be measured, and the numbers that stand for it in both kinds of file.

use std::fmt;

/// A function that the runtime configuration can ask for.
///
/// Ids 0 to 2 are the original protocol's, 3 is what it planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Function {
    /// 0: executed warp-level instructions, an integer.
    Instructions = 0,
    /// 1: theoretical occupancy of a launch in percent.
    Occupancy = 1,
    /// 2: 100 x global memory instructions / 128-byte cache lines touched, in percent.
    Coalescence = 2,
    /// 3: executed branches whose threads diverged, in percent.
    Divergence = 3,
}

impl Function {
    /// Every function, by rising id.
    pub const ALL: [Self; 4] =
        [Self::Instructions, Self::Occupancy, Self::Coalescence, Self::Divergence];

    /// The number that stands for it in a file.
    #[must_use]
    pub const fn id(self) -> PrimitiveId {
        PrimitiveId(self as u32)
    }

    /// The function of a number, where there is one.
    #[must_use]
    pub fn from_id(id: PrimitiveId) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.id() == id)
    }

    /// The name used in configuration files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Occupancy => "occupancy",
            Self::Coalescence => "coalescence",
            Self::Divergence => "divergence",
        }
    }

    /// The function of that name, where there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number before the colon of a measurement line. Numbers without a meaning here are kept, so
/// that they can be counted and named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrimitiveId(pub u32);

impl PrimitiveId {
    /// 4: launches seen since the last flush. Published by the instrument, never asked for.
    pub const LAUNCHES: Self = Self(4);
}

impl fmt::Display for PrimitiveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FunctionSet(u8);

impl FunctionSet {
    /// No function: nothing is measured.
    pub const EMPTY: Self = Self(0);

    /// Adds one function.
    pub const fn insert(&mut self, function: Function) {
        self.0 |= 1 << function as u8;
    }

    /// Whether the function is in the set.
    #[must_use]
    pub const fn contains(self, function: Function) -> bool {
        self.0 & (1 << function as u8) != 0
    }

    /// Whether the set holds nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The functions of the set, by rising id.
    pub fn iter(self) -> impl Iterator<Item = Function> {
        Function::ALL.into_iter().filter(move |function| self.contains(*function))
    }

    /// The set as one byte, bit n standing for id n; for hand-over through an atomic.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of such a byte; bits without a function are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1111)
    }
}

impl FromIterator<Function> for FunctionSet {
    fn from_iter<I: IntoIterator<Item = Function>>(functions: I) -> Self {
        let mut set = Self::EMPTY;
        for function in functions {
            set.insert(function);
        }
        set
    }
}

/// `0,1,2`, as a runtime configuration line holds it.
impl fmt::Display for FunctionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, function) in self.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            function.id().fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for FunctionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_by_rising_id_whatever_the_order_of_insertion() {
        let set: FunctionSet = [Function::Divergence, Function::Instructions].into_iter().collect();
        assert_eq!(set.to_string(), "0,3");
        assert_eq!(FunctionSet::from_bits(set.bits()), set);
    }

    #[test]
    fn every_function_is_found_by_its_id_and_by_its_name() {
        for function in Function::ALL {
            assert_eq!(Function::from_id(function.id()), Some(function));
            assert_eq!(Function::from_name(function.name()), Some(function));
        }
        assert_eq!(Function::from_id(PrimitiveId::LAUNCHES), None);
    }
}
