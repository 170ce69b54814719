//! Classes of characters. Two characters are in one class if every pattern of a set treats them alike.

use std::ops::Range;

use regex_syntax::hir::Look;

use super::nfa::Nfa;
use super::work::{Lists, TooLarge, Work};

/// The number of a class of characters.
pub(super) type ClassId = u16;

const WORD: [[u32; 2]; 4] = [[0x30, 0x39], [0x41, 0x5A], [0x5F, 0x5F], [0x61, 0x7A]];
const LINE_FEED: [[u32; 2]; 1] = [[0x0A, 0x0A]];

/// Maps each character to its class. Every pattern treats the characters of one class alike.
#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    ascii: [ClassId; 128],
    /// The code points are divided into stretches: neighbouring code points of one class. `bounds` has the first code
    /// point of each stretch, and `classes` has the class of each stretch.
    bounds: Vec<u32>,
    classes: Vec<ClassId>,
    /// The first code point of each class.
    examples: Vec<u32>,
}

impl Alphabet {
    /// Divides all characters into classes, for the automaton `nfa`. Two characters are in one class only if each set
    /// of characters in `nfa` contains both or neither of them. If a pattern has look-around, such as `\b`, they are
    /// also of the same [`Kind`].
    pub(super) fn new(nfa: &Nfa, work: &mut Work) -> Result<Alphabet, TooLarge> {
        let all = Alphabet { ascii: [0; 128], bounds: vec![0], classes: vec![0], examples: vec![0] };
        let mut sets = Vec::with_capacity(nfa.sets() + 2);
        for set in 0..nfa.sets() {
            sets.push(nfa.set(set, work)?);
        }
        if nfa.looks {
            sets.extend([&WORD[..], &LINE_FEED]);
        }
        all.split(&sets, work)
    }

    /// Returns this alphabet with some classes of characters split, so that each of `sets` consists of whole classes. A
    /// set is a list of ranges of characters.
    fn split(&self, sets: &[&[[u32; 2]]], work: &mut Work) -> Result<Alphabet, TooLarge> {
        let mut bounds = self.bounds.clone();
        bounds.extend(sets.iter().copied().flatten().flat_map(|&[first, last]| [first, last + 1]));
        work.sort(&mut bounds)?;
        let mut ids: Vec<usize> = bounds.iter().map(|&bound| self.search(bound).into()).collect();
        // Has an item for each class: the index of the set that split the class last, and the new class that this set
        // split off.
        let mut splits = vec![(usize::MAX, 0); self.len()];
        for (set, &ranges) in sets.iter().enumerate() {
            for &range in ranges {
                for at in stretches(&bounds, range) {
                    work.spend(1)?;
                    let old = ids[at];
                    if splits[old].0 != set {
                        splits[old] = (set, splits.len());
                        splits.push((usize::MAX, 0));
                    }
                    ids[at] = splits[old].1;
                }
            }
        }
        // The classes are numbered in the order of their first characters.
        let mut numbers = work.vec(None, splits.len())?;
        let mut examples = Vec::new();
        let mut classes = Vec::with_capacity(ids.len());
        work.spend(ids.len() + 128)?;
        for (id, &bound) in ids.into_iter().zip(&bounds) {
            classes.push(*numbers[id].get_or_insert_with(|| {
                examples.push(bound);
                examples.len() as ClassId - 1
            }));
        }
        let mut alphabet = Alphabet { ascii: [0; 128], bounds, classes, examples };
        let mut at = 0;
        for code in 0..128 {
            at += usize::from(alphabet.bounds.get(at + 1).is_some_and(|&bound| bound <= code));
            alphabet.ascii[code as usize] = alphabet.classes[at];
        }
        Ok(alphabet)
    }

    /// Returns this alphabet with a separate class for each of `letters`, which must be sorted. Also returns, for each
    /// old class, the new classes into which it was split.
    pub(super) fn with_letters(&self, letters: &[char], work: &mut Work) -> Result<(Alphabet, Lists<Part>), TooLarge> {
        work.spend(3 * letters.len())?;
        let letter_sets: Vec<_> = letters.iter().map(|&letter| [[letter.into(); 2]]).collect();
        let sets: Vec<_> = letter_sets.iter().map(|set| &set[..]).collect();
        let alphabet = self.split(&sets, work)?;
        let mut parts = Vec::with_capacity(alphabet.len());
        for (class, &example) in (0..).zip(&alphabet.examples) {
            let letter = char::from_u32(example).and_then(|example| letters.binary_search(&example).ok());
            parts.push((self.search(example), Part { class, letter: letter.map(|letter| letter as u16) }));
        }
        parts.sort_by_key(|(whole, _)| *whole);
        let (mut parts, mut lists) = (parts.into_iter().peekable(), Lists::default());
        for whole in 0..self.len() {
            while let Some((_, part)) = parts.next_if(|(class, _)| usize::from(*class) == whole) {
                lists.push(part, work)?;
            }
            lists.close();
        }
        Ok((alphabet, lists))
    }

    fn search(&self, code: u32) -> ClassId {
        self.classes[self.bounds.partition_point(|&bound| bound <= code) - 1]
    }

    #[inline(always)]
    pub(super) fn class(&self, character: char) -> ClassId {
        match self.ascii.get(character as usize) {
            Some(&class) => class,
            None => self.search(character as u32),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.examples.len()
    }

    /// Returns the kind of the first character of a class. If a pattern has look-around, such as `\b`, all characters
    /// of the class are of this kind. Without look-around the kind does not matter.
    pub(super) fn kind(&self, class: ClassId) -> Kind {
        char::from_u32(self.examples[class as usize]).map_or(Kind::Other, Kind::of)
    }

    /// For each set of characters of `nfa`, returns the classes that make it up. Each class comes once, in any order.
    /// The alphabet must have been made for `nfa`.
    pub(super) fn classes_of(&self, nfa: &Nfa, work: &mut Work) -> Result<Lists<ClassId>, TooLarge> {
        let mut seen_in = work.vec(usize::MAX, self.len())?;
        let mut all = Lists::default();
        for set in 0..nfa.sets() {
            for &range in nfa.set(set, work)? {
                for at in stretches(&self.bounds, range) {
                    work.spend(1)?;
                    let class = self.classes[at];
                    if std::mem::replace(&mut seen_in[class as usize], set) != set {
                        all.push(class, work)?;
                    }
                }
            }
            all.close();
        }
        Ok(all)
    }

    /// Returns for each byte whether a character of a marked class begins with it in UTF-8.
    pub(super) fn first_bytes(&self, marked: &[bool], work: &mut Work) -> Result<[bool; 256], TooLarge> {
        // A surrogate (U+D800 to U+DFFF) has no UTF-8. If a range begins or ends at one, use 0xED, which is the first
        // byte of the characters just before the surrogates.
        let first_byte =
            |code| char::from_u32(code).map_or(0xED, |character| character.encode_utf8(&mut [0; 4]).as_bytes()[0]);
        let mut bytes = [false; 256];
        for (at, (&first, &class)) in self.bounds.iter().zip(&self.classes).enumerate() {
            work.spend(1)?;
            let next = self.bounds.get(at + 1).map_or(char::MAX.into(), |next| next - 1);
            if marked[class as usize] && first <= next {
                bytes[first_byte(first).into()..=first_byte(next).into()].fill(true);
            }
        }
        bytes[0x80..0xC2].fill(false); // no character begins with these bytes
        Ok(bytes)
    }
}

/// A new class of characters that `with_letters` makes from an old class. If its only character is one of `letters`,
/// `letter` is the index of this character. Otherwise `letter` is `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) class: ClassId,
    pub(super) letter: Option<u16>,
}

/// Returns the indices of the stretches in a range of code points. A stretch goes from one of the `bounds` to the next.
fn stretches(bounds: &[u32], [first, last]: [u32; 2]) -> Range<usize> {
    let from = bounds.partition_point(|&bound| bound < first);
    let count = bounds[from..].partition_point(|&bound| bound <= last);
    from..from + count
}

/// The kind of the character before or after a place in the text. Look-around such as `\b` depends on this kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    LineFeed,
    /// An ASCII letter, a digit or `_`.
    Word,
    Other,
    /// No character: the place is the beginning or the end of the stream.
    #[default]
    Edge,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::LineFeed, Kind::Word, Kind::Other, Kind::Edge];

    pub(super) fn of(character: char) -> Kind {
        match character {
            '\n' => Kind::LineFeed,
            '_' => Kind::Word,
            _ if character.is_ascii_alphanumeric() => Kind::Word,
            _ => Kind::Other,
        }
    }

    /// Returns the kind of the character whose last byte is `byte`.
    pub(super) fn of_last(byte: u8) -> Kind {
        if byte.is_ascii() { Kind::of(byte as char) } else { Kind::Other }
    }
}

/// Returns whether a look-around is supported: whether a stream can decide it from the character before its place and
/// the character after it. The Unicode forms of `\b` and `\B` are supported, but mean the same as the ASCII forms.
pub(super) fn is_supported(look: Look) -> bool {
    use Look::*;
    matches!(look, Start | End | StartLF | EndLF | WordAscii | WordAsciiNegate | WordUnicode | WordUnicodeNegate)
}

/// Returns whether `look` holds at a place in the text. `before` is the kind of the character before the place, and
/// `behind` is the kind of the character after it. `look` must be supported.
pub(super) fn holds(look: Look, before: Kind, behind: Kind) -> bool {
    match look {
        Look::Start => before == Kind::Edge,
        Look::End => behind == Kind::Edge,
        Look::StartLF => matches!(before, Kind::Edge | Kind::LineFeed),
        Look::EndLF => matches!(behind, Kind::Edge | Kind::LineFeed),
        Look::WordAscii | Look::WordUnicode => (before == Kind::Word) != (behind == Kind::Word),
        _ => (before == Kind::Word) == (behind == Kind::Word),
    }
}
