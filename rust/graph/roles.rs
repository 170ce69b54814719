//! Keeps the strings of a set apart: none is empty, none has two meanings, and what is given twice counts once.

use std::collections::HashMap;

use crate::error::{ErrorKind, Role, StopSetError};
use crate::room::{self, NoRoom};

#[derive(Default)]
pub(crate) struct Roles<'a>(HashMap<&'a str, Role>);

/// Stops without repetitions, and where each stood in the list that was given.
pub(crate) struct Distinct<'a> {
    pub(crate) texts: Vec<&'a str>,
    pub(crate) indices: Vec<u32>,
}

impl<'a> Roles<'a> {
    /// The stops of a list, each once.
    pub(crate) fn stops(&mut self, stops: &'a [String], role: Role) -> Result<Distinct<'a>, StopSetError> {
        self.0.try_reserve(stops.len()).map_err(NoRoom::from)?;
        let mut distinct = Distinct { texts: room::list(stops.len())?, indices: room::list(stops.len())? };
        for (index, stop) in stops.iter().enumerate() {
            if stop.is_empty() {
                return Err(ErrorKind::Empty { role, index }.into());
            }
            if self.add(stop, role)? {
                distinct.texts.push(stop);
                distinct.indices.push(index as u32);
            }
        }
        Ok(distinct)
    }

    /// Notes what `text` is; returns whether it is new.
    pub(crate) fn add(&mut self, text: &'a str, role: Role) -> Result<bool, StopSetError> {
        match self.0.insert(text, role) {
            None => Ok(true),
            Some(other) if other.fits(role) => Ok(false),
            Some(other) => Err(ErrorKind::TwoRoles { text: text.into(), roles: [other, role] }.into()),
        }
    }
}

impl Distinct<'_> {
    /// These indices, and those of `other` behind them.
    pub(crate) fn indices_before(mut self, other: Distinct<'_>) -> Result<Box<[u32]>, NoRoom> {
        self.indices.try_reserve_exact(other.indices.len())?;
        self.indices.extend(other.indices);
        Ok(self.indices.into())
    }
}
