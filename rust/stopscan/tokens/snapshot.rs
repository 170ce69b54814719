//! Writes and reads the state of a stream of tokens: its text, its decoder, and its ledger, which counts the tokens.

use std::collections::VecDeque;

use super::decoder::{Decode, Decoder};
use super::ledger::{Ledger, Tally};
use super::options::{EndReason, Finish};
use super::stream::{Decoded, TokenStream};
use crate::snapshot::{Fingerprint, Reader, Snapshot, SnapshotError, Writer};
use crate::stream::{Emit, Stream};

impl<E: Emit, D: Decode> TokenStream<E, D> {
    fn fingerprint(&self) -> Fingerprint {
        let mut print = self.decoded.stream.fingerprint();
        self.decoded.options.print(&mut print);
        print
    }

    #[doc(hidden)]
    pub fn try_snapshot(&self) -> Result<Snapshot, D::Error> {
        let mut error = None;
        let snapshot = Snapshot::new(self.fingerprint(), |writer| {
            let Decoded { stream, ledger, finish, .. } = &self.decoded;
            stream.write(writer);
            ledger.write(writer);
            write_finish(*finish, writer);
            error = self.decoder.write(writer).err();
        });
        error.map_or(Ok(snapshot), Err)
    }

    #[doc(hidden)]
    pub fn try_restore(&mut self, snapshot: &Snapshot) -> Result<Result<(), SnapshotError>, D::Error> {
        let mut error = None;
        let own = self.fingerprint();
        let state = snapshot.decode(|reader| {
            let stream = Stream::from_bytes(&self.decoded.stream.set, reader)?;
            let ledger = Ledger::from_bytes(reader, &self.decoded.ledger)?;
            let finish = read_finish(reader)?;
            let looped = finish == Some(Finish::Ended(EndReason::Repetition));
            if (finish == Some(Finish::StopSequence)) != stream.has_fired() && !looped {
                return None;
            }
            let decoder = self.decoder.resumed(reader).map_err(|wrong| error = Some(wrong)).ok()??;
            Some(((stream, ledger, finish, decoder), own))
        });
        if let Some(error) = error {
            return Err(error);
        }
        Ok(state.map(|(stream, ledger, finish, decoder)| {
            let (options, out) = (self.decoded.options.clone(), E::Safe::default());
            let decoded = Decoded { options, stream, ledger, finish, marker_ends: false, out, ..self.decoded };
            *self = TokenStream { decoder, decoded };
        }))
    }
}

fn write_finish(finish: Option<Finish>, writer: &mut Writer) {
    match finish {
        None => writer.number(0),
        Some(Finish::StopSequence) => writer.number(1),
        Some(Finish::StopToken(id)) => {
            writer.number(2);
            writer.number(id as usize);
        }
        Some(Finish::Ended(reason)) => writer.number(3 + reason as usize),
    }
}

fn read_finish(reader: &mut Reader<'_>) -> Option<Option<Finish>> {
    Some(match reader.number()? {
        0 => None,
        1 => Some(Finish::StopSequence),
        2 => Some(Finish::StopToken(reader.number()?.try_into().ok()?)),
        reason => Some(Finish::Ended(EndReason::from_number(reason - 3)?)),
    })
}

impl Ledger {
    fn write(&self, writer: &mut Writer) {
        let Ledger { seen, kept, read, settled, token, starts, tally } = self;
        for number in [*seen, *kept, *read, *settled, *token, starts.len()] {
            writer.number(number);
        }
        // Each item of `starts` has two numbers: how many code points were read before the text of a token, and the
        // position of the token. Their differences from the previous item are written, because they are small. Mostly
        // the positions differ by 1. Then only one number is written: twice the difference in code points. Otherwise
        // this number is greater by 1, and the difference of the positions follows.
        let mut before = (*settled, *token);
        for &(start, token) in starts.iter() {
            let (behind, tokens) = (start - before.0, token - before.1);
            writer.number(behind * 2 + usize::from(tokens != 1));
            if tokens != 1 {
                writer.number(tokens);
            }
            before = (start, token);
        }
        if let Some(tally) = tally {
            for number in [tally.counted, tally.settled].iter().chain(&tally.counts) {
                writer.number(*number);
            }
            writer.number(tally.waiting.len());
            for &(last, region) in tally.waiting.iter() {
                writer.number(last);
                writer.number(region.wrapping_add(1) as usize);
            }
        }
    }

    /// Reads the ledger that `write` wrote. The number of regions was not written, so it is taken from `like`.
    fn from_bytes(reader: &mut Reader<'_>, like: &Ledger) -> Option<Ledger> {
        let mut number = || reader.number().filter(|&number| number <= isize::MAX as usize);
        let (seen, kept, read, settled, token) = (number()?, number()?, number()?, number()?, number()?);
        if kept > seen || token > seen || settled > read {
            return None;
        }
        let mut starts = VecDeque::default();
        let mut before = (settled, token);
        for _ in 0..reader.count()? {
            let packed = reader.number()?;
            let tokens = if packed % 2 == 0 { 1 } else { reader.number()? };
            before = (before.0.checked_add(packed / 2)?, before.1.checked_add(tokens)?);
            if before.0 > read || before.1 > seen {
                return None;
            }
            starts.push_back(before);
        }
        let tally = match &like.tally {
            None => None,
            Some(tally) => Some(Box::new(Tally::from_bytes(reader, tally.counts.len(), seen)?)),
        };
        Some(Ledger { seen, kept, read, settled, token, starts, tally })
    }
}

impl Tally {
    fn from_bytes(reader: &mut Reader<'_>, regions: usize, seen: usize) -> Option<Tally> {
        let mut number = || reader.number().filter(|&number| number <= seen);
        let (counted, settled) = (number()?, number()?);
        let counts = (0..regions).map(|_| number()).collect::<Option<Vec<_>>>()?;
        let mut waiting = VecDeque::default();
        let mut before = counted;
        for _ in 0..reader.count()? {
            let last = reader.number().filter(|&last| before < last && last <= seen)?;
            let region = reader.number().filter(|&region| region <= regions)?;
            waiting.push_back((last, (region as u32).wrapping_sub(1)));
            before = last;
        }
        Some(Tally { counts, counted, settled, waiting })
    }
}

impl Decoder {
    pub(super) fn write(&self, writer: &mut Writer) {
        let length = self.len as usize;
        writer.bytes(&self.bytes[..length]);
        self.tokens[..length].iter().for_each(|&token| writer.number(token as usize));
        writer.number(self.prompted.into());
        writer.flag(self.started);
        writer.flag(self.stray);
        writer.number(self.space.map_or(0, |token| token as usize + 1));
    }

    pub(super) fn from_bytes(reader: &mut Reader<'_>) -> Option<Decoder> {
        let half = reader.bytes()?;
        let begins = std::str::from_utf8(half).map_or_else(|error| error.error_len().is_none(), str::is_empty);
        if !begins || half.len() > 3 {
            return None;
        }
        let mut decoder = Decoder {
            bytes: [0; 3],
            tokens: [0; 3],
            len: half.len() as u8,
            prompted: 0,
            started: false,
            stray: false,
            space: None,
        };
        decoder.bytes[..half.len()].copy_from_slice(half);
        for token in &mut decoder.tokens[..half.len()] {
            *token = reader.number()?.try_into().ok()?;
        }
        decoder.prompted = reader.number()?.try_into().ok().filter(|&prompted| prompted <= decoder.len)?;
        (decoder.started, decoder.stray) = (reader.flag()?, reader.flag()?);
        decoder.space = match reader.number()? {
            0 => None,
            token => Some(u32::try_from(token - 1).ok()?),
        };
        Some(decoder)
    }
}
