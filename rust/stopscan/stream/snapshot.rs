//! Writes and reads the state of a stream for snapshots. If a stop or marker has begun, a snapshot has its index and
//! the number of its bytes that were read. These two numbers stand for the state of the automaton, and also for the
//! held text. For patterns, a snapshot also has the text since the first unfinished match began.

use super::{Emit, Fired, FiredStop, Stream};
use crate::graph::{Graph, Word};
use crate::patterns::{PatternState, SavedThreads};
use crate::repeat::Loops;
use crate::set::Set;
use crate::snapshot::{Fingerprint, Reader, Snapshot, SnapshotError, Writer};
use crate::text::Place;

impl<E: Emit> Stream<E> {
    /// Returns the state of the stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.snapshot(), scanner.clone().snapshot());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.fingerprint(), |writer| self.write(writer))
    }

    /// Replaces the state of this stream by that of `snapshot`.
    ///
    /// # Errors
    /// If the snapshot was made with another set or other options. The stream is then unchanged.
    ///
    /// ```
    /// use stopscan::{SnapshotError, StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("EN");
    /// let mut other = StopScanner::new(&StopSet::new(["other"])?);
    /// assert_eq!(other.restore(&scanner.snapshot()), Err(SnapshotError::OtherSet));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        *self = snapshot.decode(|reader| Some((Stream::from_bytes(&self.set, reader)?, self.fingerprint())))?;
        Ok(())
    }

    /// Returns a fingerprint that is equal for streams with equal sets and options.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut print = self.graph().fingerprint();
        print.number(self.start as usize);
        print.number(self.include_stop.into());
        print
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let graph = self.graph();
        writer.flag(self.include_stop);
        for number in [self.start, self.cursor.node] {
            writer.number(number as usize);
        }
        writer.number(self.read.code_points);
        writer.number(self.read.bytes);
        writer.number(self.part as usize);
        if let Some(fired) = &self.fired {
            return fired.write(writer);
        }
        writer.number(0);
        let (word, length) = graph.partial(self.cursor);
        writer.number(word as usize);
        writer.number(length);
        if let Some(threads) = self.history.as_ref().and_then(|history| history.threads.as_ref()) {
            let SavedThreads { text, bytes } = threads.begun(graph.machines(self.cursor.node).0, self.held());
            writer.bytes(text.as_bytes());
            writer.bytes(&bytes);
        }
        if let Some(loops) = self.history.as_ref().and_then(|history| history.loops.as_ref()) {
            writer.bytes(&loops.to_bytes());
        }
    }

    /// Reads the stream that `write` wrote. Returns `None` if a stream of `set` cannot have written these bytes.
    pub(crate) fn from_bytes(set: &Set<E>, reader: &mut Reader<'_>) -> Option<Stream<E>> {
        let include_stop = reader.flag()?;
        let (start, node) = (reader.number()?, reader.number()?);
        if start.max(node) >= set.graph().len() {
            return None;
        }
        let mut stream = Stream::starting(set, start as u32, include_stop);
        stream.read = Place { code_points: reader.number()?, bytes: reader.number()? };
        stream.part = reader.number()?.try_into().ok()?;
        let plausible = stream.read.code_points <= stream.read.bytes && stream.read.bytes <= isize::MAX as usize;
        stream.cursor.node = node as u32;
        match reader.number().filter(|_| plausible)? {
            0 => stream.resume(reader)?,
            kind => {
                stream.fired = Some(Box::new(Fired::read(kind, &stream, reader)?));
                stream.history = None;
            }
        }
        Some(stream)
    }

    /// Restores a stream in which no stop fired: the stop or marker that had begun, the held text, the unfinished
    /// matches of patterns, and the state of loops.
    fn resume(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let graph = self.set.graph();
        let (node, word, length) = (self.cursor.node, reader.number()? as u32, reader.number()?);
        self.cursor = graph.resume(node, word, length)?;
        let mut held = graph.held(self.cursor, !self.include_stop);
        let partial =
            graph.words(node).with_literals().nth(word as usize).map_or(Some(""), |word| word.get(..length))?;
        let mut text = partial;
        let (begun, for_markers);
        if let Some(history) = &mut self.history
            && history.threads.is_some()
        {
            begun = SavedThreads { text: reader.text()?.to_owned(), bytes: reader.bytes()?.to_owned() };
            let (automaton, machines) = graph.machines(node);
            let threads = PatternState::resume(automaton, machines, &begun, self.read, !self.include_stop)?;
            for_markers = threads.text_for_markers(automaton);
            let by_matches = if self.include_stop { 0 } else { threads.held() };
            history.threads = Some(threads);
            if for_markers.len() > held {
                (text, held) = (&for_markers, for_markers.len());
            }
            if by_matches > held {
                (text, held) = (&begun.text, by_matches);
            }
        }
        if let (Some(history), Some(repeat)) = (&mut self.history, graph.repeat()) {
            history.loops = Some(Loops::from_bytes(repeat, reader.bytes()?)?);
        }
        let length = Place::after(text);
        if self.read.code_points < length.code_points || self.read.bytes < length.bytes {
            return None;
        }
        self.held.push(text.get(text.len().checked_sub(held)?..)?, held);
        Some(())
    }
}

impl Fired {
    fn write(&self, writer: &mut Writer) {
        match &self.stop {
            FiredStop::Word(word) => {
                writer.number(1);
                writer.number(word.index as usize);
            }
            FiredStop::Special(word) => {
                writer.number(2);
                writer.number(word.index as usize);
            }
            FiredStop::Pattern { index, sequence } => {
                writer.number(3);
                writer.number(*index);
                writer.bytes(sequence.as_bytes());
            }
            FiredStop::Loop { period, sequence } => {
                writer.number(4);
                writer.number(*period);
                writer.bytes(sequence.as_bytes());
            }
        }
        writer.bytes(self.unused.as_bytes());
    }

    fn read<E: Emit>(kind: usize, stream: &Stream<E>, reader: &mut Reader<'_>) -> Option<Fired> {
        let (graph, index) = (stream.graph(), reader.number()?);
        let stop: FiredStop<Box<str>> = match kind {
            1 => FiredStop::Word(stop(graph, stream.cursor.node, index)?),
            2 => FiredStop::Special(stop(graph, stream.cursor.node, index)?),
            3 if index < graph.patterns().patterns.len() => {
                FiredStop::Pattern { index, sequence: reader.text()?.into() }
            }
            4 if graph.repeat().is_some() => FiredStop::Loop { period: index, sequence: reader.text()?.into() },
            _ => return None,
        };
        let before = match &stop {
            FiredStop::Word(word) => Place::after(graph.text(*word)),
            FiredStop::Special(_) => Place::default(),
            FiredStop::Pattern { sequence, .. } | FiredStop::Loop { sequence, .. } => Place::after(sequence),
        };
        let fits = before.code_points <= stream.read.code_points && before.bytes <= stream.read.bytes;
        let unused = reader.text().filter(|_| fits)?.into();
        Some(Fired { stop, unused })
    }
}

fn stop(graph: &Graph, node: u32, index: usize) -> Option<Word> {
    (index < graph.words(node).stops()).then_some(Word { node, index: index as u32 })
}
