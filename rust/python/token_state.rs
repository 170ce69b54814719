//! The state of a token scanner as Python pickles it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::decoding::Decoding;
use super::stop_scanner::{Pickled, pickled, unpickled};
use crate::tokens::{Decoder, Finish, TokenStream};
use crate::{StopScanner, StopSet};

/// The decoder at the start and now, the counts, the scanner, and why the stream is over.
pub(super) type TokenState = (Py<PyAny>, Py<PyAny>, Counts, Pickled, Option<(u8, u32)>);

/// Tokens seen and kept, code points read and emitted, and where the tokens begin that are not kept yet.
type Counts = (usize, usize, usize, usize, Vec<(usize, usize)>);

/// The bytes of half a character, the tokens that brought them, how many are the prompt's; whether the stream is past
/// its start, and in a run that has a stray byte.
type Half = (Vec<u8>, Vec<u32>, u8, bool, bool);

const FINISHES: [Finish; 4] = [Finish::StopSequence, Finish::Eos, Finish::Length, Finish::Closed];

pub(super) fn state(py: Python<'_>, decoding: &Decoding) -> PyResult<TokenState> {
    let (start, now) = match decoding {
        Decoding::Native(scanner) => (half(py, &scanner.start)?, half(py, &scanner.decoder)?),
        Decoding::Window(window) => (window.start.clone_ref(py), window.decoder.clone_ref(py)),
    };
    let TokenStream { ledger, scanner, finish, .. } = decoding.stream();
    let starts = ledger.starts.iter().copied().collect();
    let counts = (ledger.seen, ledger.kept, ledger.read, ledger.emitted, starts);
    let finish = finish.map(|finish| match finish {
        Finish::StopToken(id) => (FINISHES.len() as u8, id),
        _ => (FINISHES.iter().position(|known| *known == finish).unwrap_or_default() as u8, 0),
    });
    Ok((start, now, counts, pickled(scanner.snapshot()), finish))
}

/// Makes `decoding`, which is at its start, what `state` is of.
pub(super) fn restore(py: Python<'_>, decoding: &mut Decoding, stops: &StopSet, state: TokenState) -> PyResult<()> {
    let wrong = || PyValueError::new_err("not the state of a scanner with this vocabulary and these stops");
    let (start, now, (seen, kept, read, emitted, starts), scanner, finish) = state;
    let scanner = StopScanner::restore(stops, &unpickled(scanner)).ok_or_else(wrong)?;
    match decoding {
        Decoding::Native(scanner) => {
            scanner.start = decoder(start.extract(py)?).ok_or_else(wrong)?;
            scanner.decoder = decoder(now.extract(py)?).ok_or_else(wrong)?;
        }
        Decoding::Window(window) => (window.start, window.decoder) = (start, now),
    }
    let stream = decoding.stream_mut();
    stream.scanner = scanner;
    stream.finish = match finish {
        None => None,
        Some((kind, id)) if kind as usize == FINISHES.len() => Some(Finish::StopToken(id)),
        Some((kind, _)) => Some(*FINISHES.get(kind as usize).ok_or_else(wrong)?),
    };
    let ledger = &mut stream.ledger;
    (ledger.seen, ledger.kept, ledger.read, ledger.emitted) = (seen, kept, read, emitted);
    ledger.starts = starts.into();
    Ok(())
}

fn half(py: Python<'_>, decoder: &Decoder) -> PyResult<Py<PyAny>> {
    let len = decoder.len as usize;
    let bytes = decoder.bytes[..len].to_vec();
    let half: Half = (bytes, decoder.tokens[..len].to_vec(), decoder.prompted, decoder.started, decoder.stray);
    Ok(half.into_pyobject(py)?.into_any().unbind())
}

fn decoder((half, numbers, prompted, started, stray): Half) -> Option<Decoder> {
    let len = half.len();
    let begins = std::str::from_utf8(&half).map_or_else(|error| error.error_len().is_none(), str::is_empty);
    if !begins || len > 3 || numbers.len() != len || prompted as usize > len {
        return None;
    }
    let mut decoder = Decoder { bytes: [0; 3], tokens: [0; 3], len: len as u8, prompted, started, stray };
    decoder.bytes[..len].copy_from_slice(&half);
    decoder.tokens[..len].copy_from_slice(&numbers);
    Some(decoder)
}
