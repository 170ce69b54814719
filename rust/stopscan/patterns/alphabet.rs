//! Characters, told apart as far as a set's patterns do.

use super::compile::TooLarge;
use super::compile::Work;
use super::nfa::Ranges;
use regex_syntax::hir::Look;

/// The number of a class of characters.
pub(super) type ClassId = u16;

const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];
const LINE_FEED: [(u32, u32); 1] = [(0x0A, 0x0A)];

#[derive(Clone, Debug)]
pub(super) struct Alphabet {
    ascii: [ClassId; 128],
    /// The first code point of each stretch of one class, and that class.
    bounds: Vec<u32>,
    classes: Vec<ClassId>,
    /// A code point of each class.
    examples: Vec<u32>,
}

impl Alphabet {
    /// Tells apart what one of `sets` has and not another, and the kinds of characters if there are `looks`.
    pub(super) fn new(sets: &[Ranges], looks: bool, work: &mut Work) -> Result<Alphabet, TooLarge> {
        let mut sets: Vec<&[(u32, u32)]> = sets.iter().map(Vec::as_slice).collect();
        if looks {
            sets.extend([&WORD[..], &LINE_FEED[..]]);
        }
        let mut bounds = vec![0];
        bounds.extend(sets.iter().copied().flatten().flat_map(|&(first, last)| [first, last + 1]));
        work.spend(bounds.len())?;
        bounds.sort_unstable();
        bounds.dedup();
        let mut ids = vec![0_usize; bounds.len()];
        // A class is split by each set that has some of its stretches: for a class, the last set that split it, and
        // what that made of it.
        let mut split = vec![(usize::MAX, 0)];
        for (set, ranges) in sets.iter().enumerate() {
            for &(first, last) in *ranges {
                for at in stretches(&bounds, first, last) {
                    work.spend(1)?;
                    let old = ids[at];
                    if split[old].0 != set {
                        split[old] = (set, split.len());
                        split.push((usize::MAX, 0));
                    }
                    ids[at] = split[old].1;
                }
            }
        }
        Ok(Alphabet::numbered(bounds, &ids, split.len()))
    }

    /// Numbers the classes that are left in the order of their first characters.
    fn numbered(bounds: Vec<u32>, ids: &[usize], count: usize) -> Alphabet {
        let mut numbers = vec![None; count];
        let mut examples = Vec::new();
        let mut classes = Vec::with_capacity(ids.len());
        for (&id, &bound) in ids.iter().zip(&bounds) {
            classes.push(*numbers[id].get_or_insert_with(|| {
                examples.push(bound);
                examples.len() as ClassId - 1
            }));
        }
        let mut alphabet = Alphabet { ascii: [0; 128], bounds, classes, examples };
        for code in 0..128 {
            alphabet.ascii[code as usize] = alphabet.search(code);
        }
        alphabet
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

    /// The kind of all characters of a class, where the patterns look around.
    pub(super) fn kind(&self, class: ClassId) -> Kind {
        char::from_u32(self.examples[class as usize]).map_or(Kind::Other, Kind::of)
    }

    /// A code point of a class.
    pub(super) fn example(&self, class: ClassId) -> u32 {
        self.examples[class as usize]
    }

    /// The classes of each of the sets for which the alphabet was made, each once, in no order.
    pub(super) fn classes_of(&self, sets: &[Ranges], work: &mut Work) -> Result<Vec<Vec<ClassId>>, TooLarge> {
        let mut seen_in = vec![usize::MAX; self.len()];
        let mut all = Vec::with_capacity(sets.len());
        for (set, ranges) in sets.iter().enumerate() {
            let mut classes = Vec::new();
            for &(first, last) in ranges {
                for at in stretches(&self.bounds, first, last) {
                    work.spend(1)?;
                    let class = self.classes[at];
                    if std::mem::replace(&mut seen_in[class as usize], set) != set {
                        classes.push(class);
                    }
                }
            }
            all.push(classes);
        }
        Ok(all)
    }

    /// The classes of the characters between two code points.
    pub(super) fn classes_between(&self, first: u32, last: u32) -> &[ClassId] {
        let from = self.bounds.partition_point(|&bound| bound <= first) - 1;
        &self.classes[from..self.bounds.partition_point(|&bound| bound <= last)]
    }
}

/// The stretches between `bounds` that a range covers; it begins and ends at bounds.
fn stretches(bounds: &[u32], first: u32, last: u32) -> std::ops::Range<usize> {
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
