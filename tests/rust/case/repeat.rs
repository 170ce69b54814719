use std::ops::Range;

use arbitrary::{Arbitrary, Result, Unstructured};
use stopscan::{Loops, Repeat};

use crate::reference::repeat::{Found, Rule, first_loop};

const ALPHABETS: [&str; 11] =
    ["a", "ab", "abc", "aé🤦", "a b\n", "éêè", "日本語", "🤦🤷a", "aébê日🤦", "àáâ", "a\u{301}e\u{300}"];

/// A rule and a text. The rule says which repeated text is a loop. The text has repeats inside repeats, and is cut into
/// deltas. Most repeats are too short to be a loop.
#[derive(Clone, Debug)]
pub struct Case {
    pub rule: Rule,
    pub deltas: Vec<Delta>,
}

#[derive(Clone, Debug)]
pub struct Delta {
    pub text: String,
    pub armed: bool,
    /// Whether the state is saved after this delta. The stream then goes on with a `Loops` made from the saved bytes.
    pub moves: bool,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let rule = Rule {
            count: u.int_in_range(3..=6)?,
            max_period: u.int_in_range(1..=40)?,
            min_length: u.int_in_range(32..=80)?,
        };
        Case::drawn(u, rule, 12, 600)
    }
}

impl Case {
    /// Draws about `length` characters of text, made of words of up to `longest` characters, and cuts it into deltas.
    pub fn drawn(u: &mut Unstructured<'_>, rule: Rule, longest: usize, length: usize) -> Result<Case> {
        let text = text(u, rule, longest, length)?;
        let most = *u.choose(&[1, 5, 40, 5_000])?;
        let unarmed = u.ratio(1, 3)?;
        let (mut rest, mut deltas) = (text.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (delta, after) = rest.split_at(u.int_in_range(0..=most)?.clamp(1, rest.len()));
            let armed = !unarmed || u.ratio(1, 4)? || u.is_empty();
            deltas.push(Delta { text: delta.iter().collect(), armed, moves: u.ratio(1, 16)? });
            rest = after;
        }
        Ok(Case { rule, deltas })
    }

    /// Panics unless the library finds the same loop as the reference, a simple program. Returns whether there is a
    /// loop.
    pub fn check(&self) -> bool {
        let text: Vec<_> = self.deltas.iter().flat_map(|delta| delta.text.chars().map(|c| (c, delta.armed))).collect();
        let expected = first_loop(self.rule, &text);
        assert_eq!(self.found(&text), expected, "{self:?}");
        expected.is_some()
    }

    fn found(&self, text: &[(char, bool)]) -> Option<Found> {
        let Rule { count, max_period, min_length } = self.rule;
        let repeat = Repeat::new(count, max_period, min_length).expect("the rule is within its limits");
        let mut loops = Loops::new(&repeat);
        let mut read = 0;
        for delta in &self.deltas {
            if let Some(found) = loops.feed(&delta.text, delta.armed) {
                let end = read + delta.text[..found.end].chars().count();
                let sequence: String = text[end - found.length..end].iter().map(|(character, _)| character).collect();
                assert_eq!(found.sequence, sequence, "{self:?}");
                return Some(Found { end, length: found.length, period: found.period });
            }
            read += delta.text.chars().count();
            if delta.moves {
                loops = Loops::from_bytes(&repeat, &loops.to_bytes()).expect("the snapshot is its own");
            }
        }
        None
    }
}

fn text(u: &mut Unstructured<'_>, rule: Rule, longest: usize, length: usize) -> Result<Vec<char>> {
    let letters: Vec<char> = u.choose(&ALPHABETS)?.chars().collect();
    let mut words = (0..3).map(|_| word(u, &letters, 1..longest)).collect::<Result<Vec<_>>>()?;
    let mut text = Vec::new();
    while text.len() < length && !u.is_empty() {
        let mut word_ = u.choose(&words)?.clone();
        if u.ratio(1, 4)? {
            let at = u.choose_index(word_.len())?;
            word_[at] = *u.choose(&letters)?;
        }
        let copies = u.int_in_range(1..=rule.count)?;
        let cut = u.int_in_range(0..=word_.len())?;
        let mut run = word_.repeat(copies);
        run.truncate(run.len() - cut);
        if u.ratio(1, 2)? {
            run.push(*u.choose(&letters)?);
        }
        text.extend(&run);
        if u.ratio(1, 3)? && (1..=rule.max_period).contains(&run.len()) {
            let at = u.choose_index(words.len())?;
            words[at] = run;
        }
        if u.ratio(1, 3)? {
            text.extend(word(u, &letters, 0..longest)?);
        }
    }
    Ok(text)
}

fn word(u: &mut Unstructured<'_>, letters: &[char], length: Range<usize>) -> Result<Vec<char>> {
    let length = u.int_in_range(length.start..=length.end)?;
    (0..length).map(|_| u.choose(letters).copied()).collect()
}
