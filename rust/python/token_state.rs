//! The state of a stream of tokens as Python pickles it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::decoding::Decoding;
use super::stop_scanner::{Pickled, pickled, unpickled};
use crate::stream::Stream;
use crate::tokens::{Decoder, Finish, Ledger, Reader, Tally, TokenStream};

/// The decoder at the start and now, the counts, the scanner or segmenter, and why the stream is over.
pub(super) type TokenState = (Py<PyAny>, Py<PyAny>, Counts, Pickled, Option<(u8, u32)>);

/// Tokens seen and kept, code points read and settled, the token there, and where later ones begin; the tokens of each
/// region, the last that was counted and the last that is of a marker.
type Counts = (usize, usize, usize, usize, usize, Vec<(usize, usize)>, Option<(Vec<usize>, usize, usize)>);

/// The bytes of half a character, the tokens that brought them, how many are the prompt's; whether the stream is past
/// its start, and in a run that has a stray byte.
type Half = (Vec<u8>, Vec<u32>, u8, bool, bool);

const FINISHES: [Finish; 4] = [Finish::StopSequence, Finish::Eos, Finish::Length, Finish::Closed];

pub(super) fn state<R: Reader>(py: Python<'_>, decoding: &Decoding<R>) -> PyResult<TokenState> {
    let (start, now) = match decoding {
        Decoding::Native(native) => (half(py, &native.start)?, half(py, &native.decoder)?),
        Decoding::Window(window) => (window.start.clone_ref(py), window.decoder.clone_ref(py)),
    };
    let TokenStream { ledger, reader, finish, .. } = decoding.stream();
    let finish = finish.map(|finish| match finish {
        Finish::StopToken(id) => (FINISHES.len() as u8, id),
        _ => (FINISHES.iter().position(|known| *known == finish).unwrap_or_default() as u8, 0),
    });
    Ok((start, now, counts(ledger), pickled(reader.stream().snapshot()), finish))
}

/// Makes `decoding`, which is at its start, what `state` is of.
pub(super) fn restore<R: Reader>(py: Python<'_>, decoding: &mut Decoding<R>, state: TokenState) -> PyResult<()> {
    let wrong = || PyValueError::new_err("not the state of a stream with this vocabulary and this set");
    let (start, now, counts, snapshot, finish) = state;
    let reader = Stream::restore(&decoding.stream().reader.stream().set, &unpickled(snapshot)).ok_or_else(wrong)?;
    let ledger = ledger(counts, &decoding.stream().ledger).ok_or_else(wrong)?;
    let finish = match finish {
        None => None,
        Some((kind, id)) if kind as usize == FINISHES.len() => Some(Finish::StopToken(id)),
        Some((kind, _)) => Some(*FINISHES.get(kind as usize).ok_or_else(wrong)?),
    };
    match decoding {
        Decoding::Native(native) => {
            let halves = (decoder(start.extract(py)?), decoder(now.extract(py)?));
            let (Some(start), Some(now)) = halves else {
                return Err(wrong());
            };
            (native.start, native.decoder) = (start, now);
        }
        Decoding::Window(window) => (window.start, window.decoder) = (start, now),
    }
    let stream = decoding.stream_mut();
    *stream.reader.stream_mut() = reader;
    (stream.ledger, stream.finish) = (ledger, finish);
    Ok(())
}

fn counts(ledger: &Ledger) -> Counts {
    let Ledger { seen, kept, read, settled, token, starts, tally } = ledger;
    let tally = tally.as_deref().map(|tally| (tally.counts.clone(), tally.counted, tally.marked));
    (*seen, *kept, *read, *settled, *token, starts.iter().copied().collect(), tally)
}

/// The ledger of `counts`, if these are of as many regions as `new` has.
fn ledger((seen, kept, read, settled, token, starts, tally): Counts, new: &Ledger) -> Option<Ledger> {
    let regions = |counts: Option<&Vec<usize>>| counts.map(Vec::len);
    if regions(tally.as_ref().map(|tally| &tally.0)) != regions(new.tally.as_deref().map(|tally| &tally.counts)) {
        return None;
    }
    let tally = tally.map(|(counts, counted, marked)| Box::new(Tally { counts, counted, marked }));
    Some(Ledger { seen, kept, read, settled, token, starts: starts.into(), tally })
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
