//! Replaces keys in a stream of text. If several keys begin at the same place, the longest of them is replaced.

use std::alloc::{Layout, handle_alloc_error};
use std::borrow::Cow;
use std::collections::TryReserveError;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::error::StopSetError;
use crate::room;
use crate::snapshot::{Fingerprint, Snapshot, SnapshotError, Writer};

mod rules;

use rules::Rules;

/// Keys and their replacements: compiled once, immutable, shared by any number of threads and streams.
///
/// The text is read from left to right. If several keys begin at the same place, the longest of them is replaced. The
/// search goes on after this key. All other text stays. Replacements are not searched for keys.
///
/// ```
/// use stopscan::RewriteSet;
///
/// let set = RewriteSet::new([("<P1>", "Ada"), ("<P12>", "Grace")])?;
/// assert_eq!(set.rewrite("<P12> and <P1>."), "Grace and Ada.");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone)]
pub struct RewriteSet(pub(crate) Arc<Rules>);

impl RewriteSet {
    /// Compiles keys and their replacements.
    ///
    /// # Errors
    /// If a key is empty or has two replacements, or the set is too large.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<RewriteSet, StopSetError> {
        let pairs: Vec<(K, V)> = pairs.into_iter().collect();
        Ok(RewriteSet(Arc::new(Rules::new(&pairs)?)))
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys and their replacements, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.len()).map(|index| (self.0.key(index), self.0.value(index)))
    }

    /// Replaces the keys in a whole text.
    pub fn rewrite<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut rewriter = Rewriter::new(self);
        let all = rewriter.feed(text);
        if std::ptr::eq(all, text) {
            return Cow::Borrowed(text);
        }
        let mut all = all.to_owned();
        all.push_str(rewriter.flush());
        Cow::Owned(all)
    }

    /// Returns a fingerprint that is equal for equal sets, in every process.
    fn fingerprint(&self) -> Fingerprint {
        let mut writer = Writer::default();
        for (key, value) in self.iter() {
            writer.bytes(key.as_bytes());
            writer.bytes(value.as_bytes());
        }
        Fingerprint::of(&writer.0)
    }
}

impl PartialEq for RewriteSet {
    fn eq(&self, other: &RewriteSet) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.iter().eq(other.iter())
    }
}

impl Eq for RewriteSet {}

impl Hash for RewriteSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl fmt::Debug for RewriteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Replaces keys in one stream: deltas in, text out. Text is held only while it may still become a key, or a longer
/// key. The output does not depend on how the text is cut into deltas.
///
/// ```
/// use stopscan::{RewriteSet, Rewriter};
///
/// let mut rewriter = Rewriter::new(&RewriteSet::new([("<P1>", "Ada")])?);
/// assert_eq!(rewriter.feed("Dear <P"), "Dear ");
/// assert_eq!(rewriter.held(), "<P");
/// assert_eq!(rewriter.feed("1>, <"), "Ada, ");
/// assert_eq!(rewriter.flush(), "<");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Debug)]
pub struct Rewriter {
    pub(crate) set: RewriteSet,
    /// In the trie of the keys, the node that stands for the held text.
    pub(crate) node: u32,
    /// The output of the last call. Not used if the call could return a part of its delta.
    out: String,
}

/// `Rewriter::begin` shrinks the output buffer to at most this many bytes.
const SPARE: usize = 256;

/// A host, such as the Python module, copies the output into a string. For each byte of the output, the copy needs at
/// most this many bytes, because a string of Python may need four bytes for a character.
const COPY: usize = 4;

impl Clone for Rewriter {
    fn clone(&self) -> Rewriter {
        Rewriter { set: self.set.clone(), node: self.node, out: String::new() }
    }
}

impl Rewriter {
    /// Makes a new stream.
    pub fn new(set: &RewriteSet) -> Rewriter {
        Rewriter { set: set.clone(), node: 0, out: String::new() }
    }

    /// Reads `delta`, and returns the text that is safe to emit. If nothing is held and nothing is replaced, this is
    /// `delta` itself.
    #[inline]
    pub fn feed<'a>(&'a mut self, delta: &'a str) -> &'a str {
        if self.is_idle() && self.set.is_plain(delta) {
            return delta;
        }
        self.try_feed(delta).unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
    }

    /// Does the same as [`Rewriter::feed`], but returns an error if memory runs out. It is for hosts, such as the
    /// Python module, that copy the output and can raise the error.
    ///
    /// # Errors
    /// If there is not enough memory for the output and its copy. The stream is then unchanged.
    pub fn try_feed<'a>(&'a mut self, delta: &'a str) -> Result<&'a str, TryReserveError> {
        self.begin();
        let rules = &*self.set.0;
        let (plain, text, mut node) = (rules.trie().plain(), delta.as_bytes(), self.node);
        let mut pieces = Pieces { rules, held: rules.text(node), delta, done: 0, out: &mut self.out };
        let (held, mut at) = (pieces.held.len(), 0);
        while at < text.len() {
            if node == 0 {
                match text[at..].iter().position(|&byte| plain.begins(byte)) {
                    Some(passed) => at += passed,
                    None => break,
                }
            }
            at += 1;
            rules.step(&mut node, text[at - 1], |length, key| pieces.replace(held + at - length, key))?;
        }
        let end = held + text.len() - rules.depth(node);
        let changed = held > 0 || pieces.done > 0;
        if changed {
            pieces.keep(end)?;
        }
        let out = if changed { self.out.as_str() } else { &delta[..end] };
        room::ask(COPY * out.len())?;
        self.node = node;
        Ok(out)
    }

    /// Ends the text: returns the held text with its keys replaced. More text may be fed afterwards, but no key can
    /// begin before a flush and end after it.
    pub fn flush(&mut self) -> &str {
        self.try_flush().unwrap_or_else(|_| handle_alloc_error(Layout::new::<u8>()))
    }

    /// Does the same as [`Rewriter::flush`], but returns an error if memory runs out. It is for hosts, such as the
    /// Python module, that copy the output and can raise the error.
    ///
    /// # Errors
    /// If there is not enough memory for the output and its copy. The stream is then unchanged.
    pub fn try_flush(&mut self) -> Result<&str, TryReserveError> {
        self.begin();
        let (rules, mut node) = (&*self.set.0, self.node);
        let mut pieces = Pieces { rules, held: rules.text(node), delta: "", done: 0, out: &mut self.out };
        let held = pieces.held.len();
        while node != 0 {
            rules.settle(&mut node, 0, |length, key| pieces.replace(held - length, key))?;
        }
        pieces.keep(held)?;
        room::ask(COPY * self.out.len())?;
        self.node = node;
        Ok(&self.out)
    }

    /// The text that is withheld because it may be the beginning of a key. If it already is a key, a longer key may
    /// still follow.
    pub fn held(&self) -> &str {
        self.set.0.text(self.node)
    }

    /// Goes back to the start of the stream.
    pub fn reset(&mut self) {
        self.node = 0;
    }

    /// The set of the stream.
    pub fn set(&self) -> &RewriteSet {
        &self.set
    }

    /// Returns the state of the stream.
    ///
    /// ```
    /// use stopscan::{RewriteSet, Rewriter};
    ///
    /// let set = RewriteSet::new([("<P1>", "Ada")])?;
    /// let mut rewriter = Rewriter::new(&set);
    /// rewriter.feed("Dear <P");
    /// let mut elsewhere = Rewriter::new(&set);
    /// elsewhere.restore(&rewriter.snapshot())?;
    /// assert_eq!(elsewhere.feed("1>"), "Ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.set.fingerprint(), |writer| {
            writer.number(self.set.0.key_at(self.node));
            writer.number(self.set.0.depth(self.node));
        })
    }

    /// Replaces the state of this stream by that of `snapshot`.
    ///
    /// # Errors
    /// If the snapshot was made with another set. The stream is then unchanged.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.node = snapshot.decode(|reader| {
            let (key, depth) = (reader.number()?, reader.number()?);
            Some((self.set.0.node_of(key, depth)?, self.set.fingerprint()))
        })?;
        Ok(())
    }

    fn begin(&mut self) {
        self.out.clear();
        self.out.shrink_to(SPARE);
    }
}

/// Collects the output of one call.
struct Pieces<'a> {
    rules: &'a Rules,
    held: &'a str,
    delta: &'a str,
    /// How many bytes of the text (`held` followed by `delta`) were copied to `out` or replaced.
    done: usize,
    out: &'a mut String,
}

impl Pieces<'_> {
    /// Replaces the key that begins at `start`. If the replacement equals the key, does nothing: the key is copied with
    /// other text.
    fn replace(&mut self, start: usize, key: usize) -> Result<(), TryReserveError> {
        let (key, value) = (self.rules.key(key), self.rules.value(key));
        if key != value {
            self.keep(start)?;
            self.push(value)?;
            self.done += key.len();
        }
        Ok(())
    }

    /// Copies the text from `done` to `end` to the output, unchanged.
    fn keep(&mut self, end: usize) -> Result<(), TryReserveError> {
        let (held, start) = (self.held.len(), self.done);
        self.done = end;
        if start < held {
            self.push(&self.held[start..end.min(held)])?;
        }
        self.push(&self.delta[start.saturating_sub(held)..end.saturating_sub(held)])
    }

    fn push(&mut self, text: &str) -> Result<(), TryReserveError> {
        self.out.try_reserve(text.len())?;
        self.out.push_str(text);
        Ok(())
    }
}
