//! Characters, told apart as far as a set's patterns do.

use std::ops::Range;

use regex_syntax::hir::Look;

use super::nfa::Nfa;
use super::work::{Lists, TooLarge, Work};

/// The number of a class of characters.
pub(super) type ClassId = u16;

const WORD: [[u32; 2]; 4] = [[0x30, 0x39], [0x41, 0x5A], [0x5F, 0x5F], [0x61, 0x7A]];
const LINE_FEED: [[u32; 2]; 1] = [[0x0A, 0x0A]];

/// Classes of characters: no pattern tells the characters of one class apart.
#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    ascii: [ClassId; 128],
    /// The first code point of each stretch of one class, and that class.
    bounds: Vec<u32>,
    classes: Vec<ClassId>,
    /// The first code point of each class.
    examples: Vec<u32>,
}

impl Alphabet {
    /// The classes that the sets of `nfa` tell apart, and the kinds of characters if its patterns look around.
    pub(super) fn new(nfa: &Nfa, work: &mut Work) -> Result<Alphabet, TooLarge> {
        let mut bounds = vec![0];
        for set in 0..nfa.sets() {
            bounds.extend(nfa.set(set, work)?.iter().flat_map(|&[first, last]| [first, last + 1]));
        }
        if nfa.looks {
            bounds.extend(WORD.iter().chain(&LINE_FEED).flat_map(|&[first, last]| [first, last + 1]));
        }
        work.spend(bounds.len())?;
        bounds.sort_unstable();
        bounds.dedup();
        let mut splitter = Splitter { ids: work.vec(0, bounds.len())?, split: vec![(usize::MAX, 0)], bounds: &bounds };
        for set in 0..nfa.sets() {
            let ranges = nfa.set(set, work)?;
            splitter.split(set, ranges, work)?;
        }
        if nfa.looks {
            splitter.split(nfa.sets(), &WORD, work)?;
            splitter.split(nfa.sets() + 1, &LINE_FEED, work)?;
        }
        let Splitter { ids, split, .. } = splitter;
        Alphabet::numbered(bounds, &ids, split.len(), work)
    }

    /// Numbers the classes that are left, of `count` at most, in the order of their first characters.
    fn numbered(bounds: Vec<u32>, ids: &[usize], count: usize, work: &mut Work) -> Result<Alphabet, TooLarge> {
        let mut numbers = work.vec(None, count)?;
        let mut examples = Vec::new();
        let mut classes = Vec::with_capacity(ids.len());
        work.spend(ids.len() + 128)?;
        for (&id, &bound) in ids.iter().zip(&bounds) {
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

    /// The same with each of `letters`, which are in order, in a class of its own. Also returns the classes that each
    /// class became, with the index of the letter if the class is that of one.
    pub(super) fn with_letters(&self, letters: &[char], work: &mut Work) -> Result<(Alphabet, Lists<Part>), TooLarge> {
        work.spend(3 * (self.bounds.len() + 2 * letters.len()))?;
        let (mut bounds, mut ids) = (Vec::new(), Vec::new());
        let mut letters_left = (0..).zip(letters.iter().map(|&letter| u32::from(letter))).peekable();
        for (at, (&first, &class)) in self.bounds.iter().zip(&self.classes).enumerate() {
            let end = self.bounds.get(at + 1).copied().unwrap_or(u32::MAX);
            let mut begin = first;
            while let Some((index, letter)) = letters_left.next_if(|(_, letter)| *letter < end) {
                if begin < letter {
                    bounds.push(begin);
                    ids.push(class as usize);
                }
                bounds.push(letter);
                ids.push(self.len() + index);
                begin = letter + 1;
            }
            if begin < end {
                bounds.push(begin);
                ids.push(class as usize);
            }
        }
        let alphabet = Alphabet::numbered(bounds, &ids, self.len() + letters.len(), work)?;
        let mut parts = Vec::with_capacity(alphabet.len());
        for (class, &example) in (0..).zip(&alphabet.examples) {
            let example = char::from_u32(example);
            let letter = example.and_then(|example| letters.binary_search(&example).ok());
            // A class of surrogates: no text has any.
            let whole = example.map_or(0, |example| self.class(example));
            parts.push((whole, Part { class, letter: letter.map(|letter| letter as u16) }));
        }
        Ok((alphabet, Lists::grouped(self.len(), &parts, work)?))
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

    /// The kind of all characters of a class, if the patterns look around.
    pub(super) fn kind(&self, class: ClassId) -> Kind {
        char::from_u32(self.examples[class as usize]).map_or(Kind::Other, Kind::of)
    }

    /// The classes of each set of `nfa`, for which the alphabet was made, each once, in no order.
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

    /// Which bytes begin a character of the classes that are marked.
    pub(super) fn first_bytes(&self, marked: &[bool], work: &mut Work) -> Result<[bool; 256], TooLarge> {
        let mut bytes = [false; 256];
        for byte in 0..=0xF4_u8 {
            let (first, last) = match u32::from(byte) {
                ascii @ ..0x80 => (ascii, ascii),
                0x80..0xC2 => continue, // they begin no character
                lead @ ..0xE0 => ((lead & 0x1F) << 6, (lead & 0x1F) << 6 | 0x3F),
                lead @ ..0xF0 => ((lead & 0x0F) << 12, (lead & 0x0F) << 12 | 0xFFF),
                lead => ((lead & 0x07) << 18, (lead & 0x07) << 18 | 0x3FFFF),
            };
            let from = self.bounds.partition_point(|&bound| bound <= first) - 1;
            let classes = &self.classes[from..self.bounds.partition_point(|&bound| bound <= last)];
            work.spend(1 + classes.len())?;
            bytes[byte as usize] = classes.iter().any(|&class| marked[class as usize]);
        }
        Ok(bytes)
    }
}

/// A class that is a part of another, and the index of the letter if it has only that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) class: ClassId,
    pub(super) letter: Option<u16>,
}

/// Splits classes by one set of characters after the other.
struct Splitter<'a> {
    bounds: &'a [u32],
    /// The class of each stretch between the bounds.
    ids: Vec<usize>,
    /// For each class, the last set that split it, and the class of what the two have in common.
    split: Vec<(usize, usize)>,
}

impl Splitter<'_> {
    fn split(&mut self, set: usize, ranges: &[[u32; 2]], work: &mut Work) -> Result<(), TooLarge> {
        for &range in ranges {
            for at in stretches(self.bounds, range) {
                work.spend(1)?;
                let old = self.ids[at];
                if self.split[old].0 != set {
                    self.split[old] = (set, self.split.len());
                    self.split.push((usize::MAX, 0));
                }
                self.ids[at] = self.split[old].1;
            }
        }
        Ok(())
    }
}

/// The stretches between `bounds` that a range covers. It begins and ends at bounds.
fn stretches(bounds: &[u32], [first, last]: [u32; 2]) -> Range<usize> {
    let from = bounds.partition_point(|&bound| bound < first);
    let count = bounds[from..].partition_point(|&bound| bound <= last);
    from..from + count
}

/// What stands before or behind a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    LineFeed,
    /// An ASCII letter, a digit or `_`.
    Word,
    Other,
    /// Nothing: it is the beginning or the end of the stream.
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

    /// The kind of the character that a byte ends.
    pub(super) fn of_last(byte: u8) -> Kind {
        if byte.is_ascii() { Kind::of(byte as char) } else { Kind::Other }
    }
}

/// Whether `look` holds between what stands before and behind it. Others than these are refused.
pub(super) fn holds(look: Look, before: Kind, behind: Kind) -> bool {
    match look {
        Look::Start => before == Kind::Edge,
        Look::End => behind == Kind::Edge,
        Look::StartLF => matches!(before, Kind::Edge | Kind::LineFeed),
        Look::EndLF => matches!(behind, Kind::Edge | Kind::LineFeed),
        Look::WordAscii => (before == Kind::Word) != (behind == Kind::Word),
        Look::WordAsciiNegate => (before == Kind::Word) == (behind == Kind::Word),
        _ => false,
    }
}
